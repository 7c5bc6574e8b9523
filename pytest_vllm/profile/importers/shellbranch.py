"""Branches and loops of a shell script, each followed every way that it may go."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_vllm.profile.importers.shellarms import Arm, merged, taken_of
from pytest_vllm.profile.importers.shellprefix import starts, stripped
from pytest_vllm.profile.importers.shellprinted import Printed
from pytest_vllm.profile.importers.shelltest import UNDECIDED, Outcome, in_case, outcome
from pytest_vllm.profile.importers.shelltree import nodes
from pytest_vllm.profile.importers.shellvalue import Remark, Value

if TYPE_CHECKING:
    from tree_sitter import Node

    from pytest_vllm.profile.importers.shellstate import State


#: Values of a loop that are followed at most, and rounds of one that counts for itself.
MANY = 8
ROUNDS = 64
#: Conditions that are made of others, and those that set a variable.
_COMPOUND = ("list", "negated_command", "redirected_statement")
_SETTING = ("variable_assignment", "variable_assignments", "declaration_command")
_TESTS = ("test_command", "negated_command", "command")


class Branches(Printed):
    """Statements that decide which others are run."""

    def _list(self, node: Node) -> None:
        """`A && B`, `A || B`. Whatever is not a test is taken to succeed."""
        left, operator, right = [child for child in node.children if child.type != "comment"][:3]
        follows = operator.type == "&&"
        counts = left.type == "compound_statement" and self.script.text(left).startswith("((")
        tests = counts or left.type in ("test_command", "negated_command")
        found = outcome(left, self.expand()) if counts or left.type in _TESTS else UNDECIDED
        if tests and not counts:
            self.claim(left)
        else:
            self.visit(left)
        if not tests and found == UNDECIDED:
            if follows:
                self.visit(right)
                return
            found = Outcome(truth=True, outside=True)
        found = found if follows else found.inverse()
        self._arms([Arm(found, self.script.shown(left), self.script.line(left), [right])], right)

    def _test_command(self, node: Node) -> None:
        self.claim(node)
        self.idle.append((self.script.line(node), "a condition"))

    _negated_command = _test_command

    def _if_statement(self, node: Node) -> None:
        arms: list[Arm] = []
        for clause in [node, *[one for one in node.children if one.type in ("elif_clause", "else_clause")]]:
            inner = [
                one for one in clause.children if one.type not in ("elif_clause", "else_clause", "comment")
            ]
            if clause.type == "else_clause":
                arms.append(
                    Arm(Outcome(truth=True, outside=False), "otherwise", self.script.line(clause), inner)
                )
                continue
            at = next(place for place, one in enumerate(inner) if one.type == "then")
            conditions = [one for one in inner[:at] if one.is_named]
            for one in conditions:
                self._condition(one)
            shown = self.script.shown(conditions[-1]) if conditions else ""
            found = outcome(conditions[-1], self.expand()) if conditions else UNDECIDED
            arms.append(Arm(found, shown, self.script.line(clause), inner[at:]))
        self._arms(arms, node)

    def _condition(self, node: Node) -> None:
        """A condition is accounted for; what it sets, calls and starts counts, whatever comes of it."""
        if node.type in _COMPOUND:
            for one in [child for child in node.children if child.is_named]:
                self._condition(one)
        elif node.type in _SETTING or (node.type == "command" and self._acts(node)):
            self.visit(node)
        self.claim(node)

    def _acts(self, node: Node) -> bool:
        """Whether a command in a condition does more than answer: it changes the shell, or starts vLLM."""
        parts = [one for one in node.children if one.is_named and "redirect" not in one.type]
        words, _ = stripped(self.expand().words([one for one in parts if one.type != "variable_assignment"]))
        texts = [value.text for value, _ in words]
        acts = bool(texts) and (texts[0] in self.state.functions or hasattr(self, f"_do_{texts[0]}"))
        return acts or starts(texts)

    def _case_statement(self, node: Node) -> None:
        subject = next(one for one in node.children if one.is_named)
        self.claim(subject)
        value, arms = self.expand().text(subject), []
        shown, line = self.script.shown(subject), self.script.line(node)
        for item in [one for one in node.children if one.type == "case_item"]:
            at = next(place for place, one in enumerate(item.children) if one.type == ")")
            patterns = [one for one in item.children[:at] if one.is_named]
            for one in patterns:
                self.claim(one)
            written = "".join(self.script.text(one) for one in item.children[:at])
            found = in_case(value, item.children[:at], self.expand())
            if written == "*":
                found = Outcome(truth=True, outside=False)
            arms.append(Arm(found, f"{shown} is {written.lstrip('(')}", line, item.children[at:]))
        self._arms(arms, node)

    def _arms(self, arms: list[Arm], node: Node) -> None:
        """Every arm that may be taken, each from the same state; then the one that is."""
        before, open_ = self.state, True
        arms = self._as_assumed(arms)
        ways: list[tuple[Arm, State]] = []
        branch = len(self.taken)
        self.taken[branch] = -1
        for at, arm in enumerate(arms):
            if not open_ or (arm.found.truth is False and not arm.found.outside):
                for one in arm.body:
                    self.claim(one)
                self.idle.append((arm.line, f"what is never reached, by `{arm.shown}`"))
                continue
            self.state = before.copy()
            hangs = arm.found.outside or bool(ways)
            self._where += [f"{arm.shown} (line {arm.line})"] if hangs else []
            self._path.append((branch, at))
            self.visit_all(arm.body)
            self._path.pop()
            self._where = self._where[:-1] if hangs else self._where
            ways.append((arm, self.state))
            open_ = not (arm.found.truth is True and not arm.found.outside)
        if open_:
            rest = Arm(Outcome(truth=True, outside=False), "otherwise", self.script.line(node), [])
            ways.append((rest, before.copy()))
        self.state = before
        self.ends_in_between(ways)
        before.become(merged(ways))
        chosen = taken_of(ways)[0]
        self.taken[branch] = next((at for at, arm in enumerate(arms) if arm is chosen), -1)

    def _as_assumed(self, arms: list[Arm]) -> list[Arm]:
        """The arms, where one of them hangs on what the chosen command hangs on too: that one holds."""
        at = next((at for at, arm in enumerate(arms) if arm.shown in self.assumed), None)
        if at is None or arms[at].found.truth is True or not (arms[at].found.outside or _open(arms[at])):
            return arms
        yes, no = Outcome(truth=True, outside=True), Outcome(truth=False, outside=True)
        return [
            replace(arm, found=yes if place == at else no) if place <= at else arm
            for place, arm in enumerate(arms)
        ]

    def _for_statement(self, node: Node) -> None:
        name = next(self.script.text(one) for one in node.children if one.type == "variable_name")
        body = node.children[-1]
        listed = [
            one for one in node.children if one.is_named and one != body and one.type != "variable_name"
        ]
        if listed and listed[0].type == "variable_name":
            listed = listed[1:]
        for one in node.children[:-1]:
            self.claim(one)
        values = [value for one in listed for value in self._numbers(one)]
        if not listed and "in" not in [self.script.text(one) for one in node.children]:
            values = list(self.state.arguments)
        line, followed = self.script.line(node), True
        if not values or len(values) > MANY or any(one.literal for one in values):
            text = f"${name} runs over what an importer does not follow; write one value in its place"
            values, followed = [Value("", (Remark(line, text, fatal=True),), outside=True)], False
        for value in values:
            self.state.assign(name, value)
            self.visit(body) if followed else self._again(body, line)

    def _numbers(self, node: Node) -> list[Value]:
        found = re.fullmatch(r"\{(\d+)\.\.(\d+)\}", self.script.text(node))
        counted = re.fullmatch(r"\$\(seq (?:(\d+) )?(\d+)\)", self.script.text(node))
        match = found or counted
        if match is None:
            return self.expand().fields(node)
        first, last = int(match[1] or 1), int(match[2])
        return [Value(str(one)) for one in range(first, min(last, first + MANY) + 1)]

    def _c_style_for_statement(self, node: Node) -> None:
        """A loop that counts: its body is followed once, its variables are not known."""
        line = self.script.line(node)
        for one in node.children[:-1]:
            self.claim(one)
            for inner in nodes(one):
                if inner.type == "variable_assignment":
                    name = self.script.text(inner.children[0])
                    text = f"${name} counts in a loop (line {line}); write one value in its place"
                    self.state.assign(name, Value("", (Remark(line, text, fatal=True),), outside=True))
        self._again(node.children[-1], line)

    def _again(self, body: Node, line: int) -> None:
        """The body of a loop whose rounds are not known: what a second round changes again is not known."""
        self.visit(body)
        after, kept = dict(self.state.values), self.state.copy()
        told = [(one, len(one)) for one in (self.starts, self.others, self.idle, self.notes)]
        self.visit(body)
        again, self.state = self.state.values, kept
        for one, length in told:
            del one[length:]
        for name in [name for name, value in again.items() if value != after.get(name)]:
            self.set_outside(name, line, "changes in a loop")

    def _read_through(self, body: Node, line: int) -> None:
        """A loop over lines that are read when the script runs: what it sets is not known."""
        before = dict(self.state.values)
        self._again(body, line)
        for name in [name for name, value in self.state.values.items() if value != before.get(name)]:
            self.set_outside(name, line, "is set in a loop over what is read when the script runs")

    def _while_statement(self, node: Node) -> None:
        inner = [one for one in node.children if one.is_named]
        for one in inner[:-1]:
            self._condition(one)
        found = outcome(inner[0], self.expand()) if inner[:-1] else UNDECIDED
        if node.children[0].type == "until":
            found = found.inverse()
        body = inner[-1]
        if any(_reads(self.script.text(one)) for one in inner[:-1]):
            self._read_through(body, self.script.line(node))
            return
        if _never_ends(self.script.text(inner[0])) and node.children[0].type == "while":
            self._again(body, self.script.line(node))
            return
        for _ in range(ROUNDS):
            if found.truth is not True or found.outside or not inner[:-1]:
                break
            self.visit(body)
            found = outcome(inner[0], self.expand())
            found = found.inverse() if node.children[0].type == "until" else found
        self._arms([Arm(found, self.script.shown(inner[0]), self.script.line(node), [body])], node)


def _open(arm: Arm) -> bool:
    return arm.found.truth is None


def _never_ends(condition: str) -> bool:
    """Whether a condition always holds: only `break` ends the loop, in a round that nobody knows."""
    return condition.strip("[]() \t") in (":", "true", "1")


def _reads(condition: str) -> bool:
    """Whether a condition reads a line of what a program or a file gives."""
    return re.match(r"(?:\w+=\S*\s+)*(?:read|IFS=\S*\s+read)\b", condition.strip()) is not None
