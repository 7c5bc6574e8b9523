"""What generated files are put together of; `{}` is a part that has to be seen, or its line named."""

from __future__ import annotations

#: A statement of a script; `{}` is a name of its own, which has to be seen, or the line has to be named.
STATEMENTS = [
    "{}=1",
    "export {}=x",
    "{}=(a b)",
    "{}+=more",
    "unset {}",
    "local_{}() {{ true; }}",
    "echo {}",
    "sleep 1 # a comment",
    "cd /srv/{}",
    "source ./{}.sh",
    "pip install {}",
    "docker run -d redis:{}",
    'if [ -n "${}" ]; then run_it; fi',
    "if command -v {}; then pip uninstall x; else true; fi",
    "for i in 1 2; do start_{} $i; done",
    "for ((i=0; i<3; i++)); do {} $i; done",
    "while {}; do sleep 1; done",
    'case "${}" in a) one ;; *) two ;; esac',
    "{} && other || third",
    "cat > /tmp/{} <<EOF\ntext of $HOME\nEOF",
    "( {} )",
    "{} | tee log",
    "trap '{}' EXIT",
    "select x in {}; do break; done",
    "coproc {}",
    "[[ {} == b* ]]",
    "! {}",
    "(( {} > 1 ))",
    "let {}=2",
    "{}[3]=x",
    "time {}",
]
_KEYS = """
image build blkio_config cap_add cap_drop cgroup cgroup_parent configs container_name cpu_count cpus
cpuset credential_spec depends_on deploy develop device_cgroup_rules devices dns dns_search domainname
env_x expose external_links extra_hosts group_add healthcheck hostname init ipc isolation labels links
logging mac_address mem_limit models network_mode networks oom_kill_disable pid pids_limit platform
post_start privileged provider pull_policy read_only restart runtime scale security_opt shm_size
stop_signal storage_opt sysctls tmpfs ulimits use_api_socket user userns_mode uts volumes volumes_from
working_dir not_of_compose x-mine
"""
KEYS = _KEYS.split()
VALUES = ["{}", "[{}]", "{{{}: 1}}", "[{{source: {}, target: /x}}]", "{{a: {{b: [{}]}}}}"]
UNIT_KEYS = [
    "Nice",
    "User",
    "MemoryMax",
    "Environment",
    "EnvironmentFile",
    "PassEnvironment",
    "ExecStartPre",
    "Foo",
]
_POD_KEYS = """
Image Exec Entrypoint
AddCapability AddDevice AddHost Annotation AutoUpdate CgroupsMode DNS DropCapability EnvironmentFile
EnvironmentHost GIDMap GlobalArgs GroupAdd HealthCmd HostName IP Label LogDriver Mask Memory Mount
Network NotifyX Pod PodmanArgs PublishPort Pull ReadOnly Rootfs RunInit SeccompProfile Secret ShmSize
Sysctl Timezone Tmpfs UIDMap Ulimit User UserNS Volume WorkingDir Unknown
"""
POD_KEYS = _POD_KEYS.split()

#: Instructions of a Dockerfile; most of them make no other image.
INSTRUCTIONS = [
    "ENV A={} B='{} x'",
    "ENV C {} d",
    "LABEL x={}",
    "EXPOSE 80",
    "USER {}",
    "WORKDIR /{}",
    "ARG N={}",
    "ARG M",
    "VOLUME /{}",
    "STOPSIGNAL {}",
    "HEALTHCHECK CMD {}",
    "SHELL ['/bin/{}']",
    "ENTRYPOINT ['vllm', 'serve']".replace("'", '"'),
    'CMD ["--model", "org/{}"]',
    "CMD --model {}",
    "RUN {}",
    "MAINTAINER {}",
]
_PROGRAM_KEYS = """
directory user environment autostart autorestart startsecs stdout_logfile stderr_logfile priority umask
numprocs stopsignal killasgroup exitcodes serverurl nonesuch
"""
#: Keys of a program of supervisord.
PROGRAM_KEYS = _PROGRAM_KEYS.split()
_TASK_KEYS = """
state env env_file published_ports ports volumes ipc_mode shm_size device_requests devices runtime privileged
ulimits capabilities groups user restart_policy network_mode networks memory labels log_driver recreate pull
entrypoint working_dir healthcheck security_opts detach nonesuch
"""
#: Keys of a task that starts a container.
TASK_KEYS = _TASK_KEYS.split()


#: Statements of PowerShell.
CMDLETS = [
    "${} = 'x'",
    "$env:{} = 'x'",
    "$env:{} = Get-Content x",
    "${} = @('a', 'b')",
    "${} = $other.Value",
    "Write-Host '{}'",
    "Set-Location {}",
    "Remove-Item {}",
    "docker rm -f {}",
    "docker run -d redis:{}",
    "if ($x) {{ Write-Host '{}' }}",
    "if ($x) {{\n  $env:{} = 1\n}} else {{\n  Stop-Process {}\n}}",
    "foreach ($i in 1..3) {{ Start-{} $i }}",
    "function Get-{} {{\n  return 1\n}}",
    "try {{ {} }} catch {{ exit 1 }}",
    "$x = 1; Start-{}",
    "[void]$list.Add('{}')",
    "& $tool {}",
    "Start-Process {} -ArgumentList 'a'",
    '$t = @"\n{} {{\n"@',
]
#: Statements of cmd.
BATCH = [
    "set {}=x",
    'set "{}=x y"',
    "set /a {}=1+1",
    "if not defined {} set {}=x",
    'if "%x%"=="1" set {}=x',
    'if "%x%"=="1" (\n  set {}=x\n) else (\n  call {}.bat\n)',
    "for %%i in (1 2) do echo {}",
    "echo {}",
    "cd {}",
    "call {}.bat",
    "docker rm -f {} >nul 2>&1",
    "docker run -d redis:{}",
    "where {} || exit /b 1",
    "set y=1& {}",
    ":{}",
    "goto {}",
    "{} | more",
    "start {}.exe",
]
