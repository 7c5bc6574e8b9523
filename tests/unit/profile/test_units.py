"""Values with units: what is read, what is refused, and that writing and reading agree."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_vllm.profile import units
from pytest_vllm.profile.units import Load, Share


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("15m", 900.0),
        ("900ms", 0.9),
        ("2h30m", 9000.0),
        ("1h 2m 3s 4ms", 3723.004),
        ("1.5s", 1.5),
        (90, 90.0),
        (0.25, 0.25),
    ],
)
def test_durations(text: object, seconds: float) -> None:
    """A duration is text with units or a number of seconds."""
    assert units.seconds(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "wrong", ["soon", "15", "", "15 minutes", "m", "-5s", -1, True, None, [], float("nan")]
)
def test_no_durations(wrong: object) -> None:
    """What is no duration says what would be one."""
    with pytest.raises(ValueError, match='"15m", "900ms"'):
        units.seconds(wrong)


@given(st.integers(min_value=0, max_value=10**10))
def test_durations_survive_writing(milliseconds: int) -> None:
    """Every whole millisecond is written so that it is read back."""
    value = milliseconds / 1000

    assert units.seconds(units.duration_text(value)) == pytest.approx(value)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("16GiB", 16 * 2**30),
        ("40 GB", 40 * 10**9),
        ("512MiB", 512 * 2**20),
        ("1.5 KiB", 1536),
        ("7B", 7),
        ("7", 7),
        (1024, 1024),
        ("2TB", 2 * 10**12),
    ],
)
def test_sizes(text: object, size: int) -> None:
    """GiB counts in 1024s, GB in 1000s."""
    assert units.in_bytes(text) == size


@pytest.mark.parametrize("wrong", ["16g", "16 iB", "big", "", "-1GB", -1, True, None, "GB"])
def test_no_sizes(wrong: object) -> None:
    """What is no size says what would be one."""
    with pytest.raises(ValueError, match="size"):
        units.in_bytes(wrong)


@given(st.integers(min_value=1, max_value=4096), st.sampled_from(["KiB", "MiB", "GiB", "TiB"]))
def test_whole_sizes_survive_writing(count: int, unit: str) -> None:
    """A whole number of a binary unit is written so that it is read back, to a twentieth."""
    size = units.in_bytes(f"{count}{unit}")

    assert units.in_bytes(units.size_text(size)) == pytest.approx(size, rel=0.05)


@pytest.mark.parametrize(
    ("text", "share"), [("5 %", 0.05), ("100%", 1.0), (0.05, 0.05), (1, 1.0), ("0 %", 0.0)]
)
def test_fractions(text: object, share: float) -> None:
    """A share of one is a percentage or a fraction."""
    assert units.fraction(text) == pytest.approx(share)


@pytest.mark.parametrize("wrong", ["101 %", 1.5, -0.1, "5 % of ceiling", "5", True, None])
def test_no_fractions(wrong: object) -> None:
    """Above one, below zero and shares of something else are refused."""
    with pytest.raises(ValueError, match=r'"5 %" or 0\.05'):
        units.fraction(wrong)


@given(st.integers(min_value=0, max_value=10_000))
def test_fractions_survive_writing(hundredths: int) -> None:
    """A percentage with two decimals is read back."""
    assert units.fraction(f"{hundredths / 100} %") == pytest.approx(hundredths / 10_000)


def test_speeds() -> None:
    """A speed is in tokens per second."""
    assert units.tokens_per_second("6 tok/s") == 6.0
    assert units.tokens_per_second("6.5 tokens/s") == 6.5
    assert units.tokens_per_second(47) == 47.0
    with pytest.raises(ValueError, match=r'"6 tok/s" or 6\.0'):
        units.tokens_per_second("6")


def test_counts() -> None:
    """Things are counted in whole numbers."""
    assert units.count(271_360) == 271_360.0
    for wrong in (1.5, -1, "many", True):
        with pytest.raises(ValueError, match="whole number"):
            units.count(wrong)


def test_a_share_of_the_ceiling_stays_a_share() -> None:
    """It is only worth a number once hardware and model are known."""
    assert units.share("40 % of ceiling") == Share(0.4, "ceiling")
    assert str(Share(0.4)) == "40 % of ceiling"
    assert units.share("40 %") is None
    assert units.share(3.0) is None
    with pytest.raises(ValueError, match="a share of 'floor' is not known"):
        units.share("40 % of floor")


@given(st.integers(min_value=0, max_value=1000))
def test_shares_survive_writing(tenths: int) -> None:
    """What `str()` writes is read back."""
    written = Share(tenths / 1000)

    read = units.share(str(written))

    assert read is not None
    assert read.fraction == pytest.approx(written.fraction)


@pytest.mark.parametrize(
    ("text", "load"),
    [
        ("64 streams", Load(64)),
        ("1 stream", Load(1)),
        ("2k prompt", Load(1, 2000)),
        ("8 streams, 2k prompt, 128 output", Load(8, 2000, 128)),
        ("1.5k prompt", Load(1, 1500)),
    ],
)
def test_loads(text: str, load: Load) -> None:
    """A load names streams, prompt tokens and output tokens."""
    assert units.load(text) == load


def test_no_loads() -> None:
    """Anything else says what would be one."""
    with pytest.raises(ValueError, match="not a load"):
        units.load("busy")


@pytest.mark.parametrize(
    ("text", "right"), [("64g", True), ("64gb", True), ("16GiB", True), ("1024", True), ("lots", False)]
)
def test_shared_memory_is_docker_s_notation(text: str, right: bool) -> None:
    """Checked, but kept as it is written: Docker's `64gb` is 64 GiB."""
    if right:
        assert units.shared_memory(text) == text
    else:
        with pytest.raises(ValueError, match="--shm-size"):
            units.shared_memory(text)
