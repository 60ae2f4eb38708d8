"""Chart programs as one vectorised step per rule and span width; runs wherever PyTorch runs.

An item that a rule has as its left operand lives in a plane ``(N, N, B)`` anchored left,
``XL[i, o] = X(i, i+o)``; as a right operand, in one anchored right, ``XR[j, N-1-p] = X(j-p, j)``. So all
splits of all spans of a width are a plain slice, with the batch innermost so that PyTorch's loops are
long. With ``w = j - i`` and ``R = N - w`` spans of that width, Eisner's are

    U(i,j):   CrL[0:R, 0:w]   + ClR[w:N, N-w:N]          k = i … j-1
    C→(i,j):  IrL[0:R, 1:w+1] + CrR[w:N, N-w:N]          k = i+1 … j
    C←(i,j):  ClL[0:R, 0:w]   + IlR[w:N, N-1-w:N-1]      k = i … j-1

The four sweeps and their derivation are in the README of `treelax.ops.eisner`. Memory is O(n²) a
sentence: the weights ``b`` of the splits are recomputed in every sweep.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce
from typing import TypeVar

import torch
from torch import Tensor

from treelax.ops.backend import FORBIDDEN, NO_TREE, bounded
from treelax.ops.chart.centring import needs_centring
from treelax.ops.chart.rules import Item, Program, Rule

#: Score of a split that does not exist (single root); below every sum of two forbidden items.
EXCLUDED = -3e38

Fill = Callable[[Tensor], tuple[Tensor, Tensor, Tensor]]
Weights = Callable[[Tensor, Tensor, Tensor], Tensor]
Key = TypeVar("Key", Item, Rule)


def fill_softmax(s: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Maximum, ``1/z`` and ``b·s`` with ``b = softmax(s)``, summed below the maximum."""
    top = s.amax(1)
    d = s - top[:, None]
    e = d.exp()
    scale = 1 / e.sum(1)
    return top, scale, top + e.mul_(d).sum(1).mul_(scale)


def fill_entropy(s: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Maximum, ``1/z`` and ``logsumexp(s)``."""
    top = s.amax(1)
    total = (s - top[:, None]).exp_().sum(1)
    return top, 1 / total, top + total.log()


def fill_best(s: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The maximum; nothing else is needed."""
    top = s.amax(1)
    return top, top, top


FILLS: dict[str, Fill] = {"softmax": fill_softmax, "entropy": fill_entropy, "best": fill_best}


def soft_weights(s: Tensor, top: Tensor, scale: Tensor) -> Tensor:
    """``b = exp(s - top) / z``: faster than torch's softmax over a few splits, and as exact."""
    return (s - top[:, None]).exp_().mul_(scale[:, None])


def best_weights(s: Tensor, top: Tensor, scale: Tensor) -> Tensor:
    """One-hot at the first maximum."""
    return torch.zeros_like(s).scatter_(1, s.argmax(1, keepdim=True), 1)


class Layout:
    """The planes of a program, in the order in which they are kept for the backward pass."""

    def __init__(self, program: Program) -> None:
        self.rules = program.rules
        left = dict.fromkeys(rule.left for rule in self.rules)
        right = dict.fromkeys(rule.right for rule in self.rules)
        self.left = {item: plane for plane, item in enumerate(left)}
        self.right = {item: plane for plane, item in enumerate(right, len(left))}
        #: Rules whose choices have a plane of values; those of others are left operands as they are.
        self.choices = [r for r in self.rules if r.makes[0].part or r.makes[0] not in self.left]
        self.operands = len(self.left) + len(self.right)
        self.values = self.operands + len(self.choices)
        self.planes = self.values + 3 * len(self.rules)


class Chart:
    """Planes ``(planes, N, N, B)``, all or the first ones, and their slices by width.

    Slices are ``(R, w, B)`` for splits and ``(R, B)`` for spans.
    """

    def __init__(self, layout: Layout, planes: Tensor, single_root: bool = False) -> None:
        self.planes = planes
        self.size = planes.shape[1]
        self.single_root = single_root
        stack = iter(planes.unbind())

        def take(keys: Iterable[Key]) -> dict[Key, Tensor]:
            return dict(zip(keys, stack, strict=False))

        self.left, self.right = take(layout.left), take(layout.right)
        self.choices = take(layout.choices)
        others = (rule for rule in layout.rules if rule not in layout.choices)
        self.value = self.choices | {rule: self.left[rule.makes[0]] for rule in others}
        self.top, self.scale, self.contribution = (take(layout.rules) for _ in range(3))

    def lefts(self, rule: Rule, width: int) -> Tensor:
        """The left operands of all splits."""
        return self.left[rule.left][: self.size - width, rule.first : rule.first + width]

    def rights(self, rule: Rule, width: int) -> Tensor:
        """The right operands of all splits."""
        stop = self.size - 1 + rule.first + rule.gap
        return self.right[rule.right][width:, stop - width : stop]

    def splits(self, rule: Rule, width: int) -> Tensor:
        """Sums over both operands of every split."""
        s = self.lefts(rule, width) + self.rights(rule, width)
        if self.single_root and rule.one_root:
            s[0, 1:] = EXCLUDED
        return s

    def hand_down(self, rule: Rule, width: int, shares: Tensor) -> None:
        """Add to both operands of every split."""
        self.lefts(rule, width).add_(shares)
        self.rights(rule, width).add_(shares)

    def items(self, item: Item, width: int) -> list[Tensor]:
        """The items of a width, in the planes that have them."""
        items = [at(self.left[item], width)] if item in self.left else []
        if item in self.right:
            items.append(self.right[item][width:, -1 - width])
        return items

    def place(self, rule: Rule, width: int, value: Tensor, scores: Tensor) -> None:
        """Write the values of choices, and with scores ``(N, N, B)`` the items that they make."""
        if rule in self.choices:
            at(self.choices[rule], width).copy_(value)
        for item in rule.makes:
            scored = value + scores.diagonal(item.part * width).mT if item.part else value
            for items in self.items(item, width):
                items.copy_(scored)

    def collect(self, rule: Rule, width: int, parts: Tensor) -> Tensor:
        """What the items that a rule makes have been given; parts are written to ``(B, N, N)``."""
        totals = []
        for item in rule.makes:
            totals.append(reduce(torch.add, self.items(item, width)))
            if item.part:
                parts.diagonal(item.part * width, 1, 2).copy_(totals[-1].mT)
        return reduce(torch.add, totals)


def at(plane: Tensor, width: int) -> Tensor:
    """The spans of a width in a plane anchored left, ``(R, B)``."""
    return plane[: plane.shape[0] - width, width]


class PlainBackend:
    """The backend `diagonal` of a chart program."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.layout = Layout(program)

    def inside(self, scores: Tensor, lengths: Tensor, fill: Fill, single_root: bool) -> Chart:
        """Sweep 1, bottom-up: the values of all items, with maximum and normaliser of every cell."""
        parts = self.program.parts(lengths, scores.shape[-1])
        weights = bounded(scores, parts).permute(1, 2, 0)
        planes = weights.new_zeros((self.layout.planes, *weights.shape))
        chart, nothing = Chart(self.layout, planes, single_root), weights.new_zeros(())
        for width in self.program.widths(chart.size):
            for rule in self.program.rules:
                value = nothing
                if width > 0:
                    top, scale, value = fill(chart.splits(rule, width))
                    at(chart.top[rule], width).copy_(top)
                    at(chart.scale[rule], width).copy_(scale)
                    value = value.clamp(min=FORBIDDEN)
                chart.place(rule, width, value, weights)
        return chart

    def goal(self, chart: Chart, lengths: Tensor) -> Tensor:
        """The value of every sentence, 0 for one without positions."""
        last = self.program.last(lengths)
        whole = chart.left[self.program.goal][0].gather(0, last.clamp(min=0)[None])[0]
        return whole.masked_fill(last < 0, 0)

    def given(self, chart: Chart, lengths: Tensor, whole: Tensor) -> Chart:
        """Zeros for what items will be given, and ``whole`` at whole sentences."""
        given = Chart(self.layout, torch.zeros_like(chart.planes[: self.layout.operands]))
        position = torch.arange(chart.size, device=lengths.device)[:, None]
        is_last = position == self.program.last(lengths)
        given.left[self.program.goal][0] = torch.where(is_last, whole, 0)
        return given

    def outside(self, chart: Chart, lengths: Tensor, weights: Weights) -> Tensor:
        """Sweep 2, top-down: contributions, kept in the chart; returns the tree ``(B, N, N)``."""
        given = self.given(chart, lengths, chart.planes.new_ones(()))
        tree = chart.planes.new_zeros((lengths.shape[0], chart.size, chart.size))
        for width in reversed(self.program.widths(chart.size)):
            for rule in reversed(self.program.rules):
                a = given.collect(rule, width, tree)
                if width > 0:
                    at(chart.contribution[rule], width).copy_(a)
                    top, scale = at(chart.top[rule], width), at(chart.scale[rule], width)
                    b = weights(chart.splits(rule, width), top, scale)
                    given.hand_down(rule, width, b.mul_(a[:, None]))
        return tree

    def up(self, chart: Chart, grad_tree: Tensor) -> Chart:
        """Sweep 3, bottom-up: adjoints of all contributions, ``ḡ = Σ b_k g_k``, in planes of values."""
        grad = Chart(self.layout, torch.zeros_like(chart.planes[: self.layout.values]))
        grad_tree, nothing = grad_tree.permute(1, 2, 0), grad_tree.new_zeros(())
        for width in self.program.widths(chart.size):
            for rule in self.program.rules:
                mean = nothing
                if width > 0:
                    top, scale = at(chart.top[rule], width), at(chart.scale[rule], width)
                    b = soft_weights(chart.splits(rule, width), top, scale)
                    mean = b.mul_(grad.splits(rule, width)).sum(1)
                grad.place(rule, width, mean, grad_tree)
        return grad

    def down(
        self, chart: Chart, grad: Chart, grad_value: Tensor, lengths: Tensor, entropy: bool
    ) -> Tensor:
        """Sweep 4, top-down: the adjoints of all values; returns the gradient of the scores."""
        given = self.given(chart, lengths, grad_value)
        grad_scores = grad_value.new_zeros((lengths.shape[0], chart.size, chart.size))
        for width in reversed(self.program.widths(chart.size)):
            for rule in reversed(self.program.rules):
                gv = given.collect(rule, width, grad_scores)
                if width == 0:
                    continue
                # ds_k = b_k [ gv (1 + (s_k - v)) + a (g_k - ḡ) ], without s_k - v for entropy
                s, a = chart.splits(rule, width), at(chart.contribution[rule], width)
                offset = gv - a * at(grad.value[rule], width)
                bracket = grad.splits(rule, width).mul_(a[:, None]).add_(offset[:, None])
                if not entropy:
                    # b_k is 0 long before the clamp, which keeps 0 · inf out
                    distance = (s - at(chart.value[rule], width)[:, None]).clamp_(min=-1e4)
                    bracket += distance.mul_(gv[:, None])
                b = soft_weights(s, at(chart.top[rule], width), at(chart.scale[rule], width))
                given.hand_down(rule, width, b.mul_(bracket))
        return grad_scores

    def centred(self, scores: Tensor, lengths: Tensor, single_root: bool) -> tuple[Tensor, Tensor]:
        """Scores with small chart values, where that is worth it, and what was taken off every tree.

        float64 has digits to spare.
        """
        nothing = scores.new_zeros(scores.shape[0])
        if scores.dtype != torch.float32:
            return scores, nothing
        parts = self.program.parts(lengths, scores.shape[-1])
        weights = bounded(scores, parts)
        needed = needs_centring(weights, parts)
        if not scores.is_cuda and not bool(needed.any()):  # reading it would make a GPU wait
            return scores, nothing
        tree, value = self.best_tree(scores, lengths, single_root)
        needed &= value > NO_TREE
        moved, taken_off = self.program.shift(weights, tree, value)
        moved = torch.where(needed[:, None, None], moved, weights)
        moved.masked_fill_(scores == float("-inf"), float("-inf"))
        return moved, taken_off.where(needed, 0)

    def saved_shape(self, batch: int, size: int, dtype: torch.dtype) -> tuple[int, ...]:
        return (self.layout.planes, size, size, batch)

    def soft_tree(
        self, scores: Tensor, lengths: Tensor, relaxation: str, single_root: bool, save: bool
    ) -> tuple[Tensor, Tensor, Tensor]:
        scores, offset = self.centred(scores, lengths, single_root)
        chart = self.inside(scores, lengths, FILLS[relaxation], single_root)
        tree = self.outside(chart, lengths, soft_weights)
        saved = chart.planes if save else scores.new_empty(0)
        return tree, self.goal(chart, lengths) + offset, saved

    def soft_tree_backward(
        self,
        grad_tree: Tensor,
        grad_value: Tensor,
        saved: Tensor,
        lengths: Tensor,
        relaxation: str,
        single_root: bool,
    ) -> Tensor:
        chart = Chart(self.layout, saved, single_root)
        grad = self.up(chart, grad_tree)
        return self.down(chart, grad, grad_value, lengths, relaxation == "entropy")

    def log_partition(self, scores: Tensor, lengths: Tensor, single_root: bool) -> Tensor:
        scores, offset = self.centred(scores, lengths, single_root)
        chart = self.inside(scores, lengths, FILLS["entropy"], single_root)
        return self.goal(chart, lengths) + offset

    def best_tree(
        self, scores: Tensor, lengths: Tensor, single_root: bool
    ) -> tuple[Tensor, Tensor]:
        chart = self.inside(scores, lengths, FILLS["best"], single_root)
        return self.outside(chart, lengths, best_weights), self.goal(chart, lengths)

    def sample_tree(
        self, scores: Tensor, lengths: Tensor, uniforms: Tensor, single_root: bool
    ) -> tuple[Tensor, Tensor]:
        """All samples of all sentences take their decisions side by side, one per step."""
        scores, taken_off = self.centred(scores, lengths, single_root)
        chart = self.inside(scores, lengths, FILLS["entropy"], single_root)
        (samples, batch, decisions), size, device = uniforms.shape, chart.size, scores.device
        rules = self.program.rules
        items = [item for rule in rules for item in rule.makes]
        table = torch.tensor(
            [
                (
                    *(r, items.index(rule.left), items.index(rule.right)),
                    *(rule.first, rule.gap, rule.one_root, item.part),
                )
                for r, rule in enumerate(rules)
                for item in rule.makes
            ],
            device=device,
        )
        # (rules, B, N, N): first[r, b, i, p] is the left operand of split p of X(i, j), and
        # second[r, b, j, N-1-(j-i) + p] the right one
        left = [chart.left[rule.left].roll(-rule.first, 1) for rule in rules]
        right = [chart.right[rule.right].roll(-rule.first - rule.gap, 1) for rule in rules]
        first, second = (
            torch.stack(planes).permute(0, 3, 1, 2).contiguous() for planes in (left, right)
        )

        count = samples * batch
        run = torch.arange(count, device=device)
        sentence = run % batch
        last = self.program.last(lengths)[sentence]
        # items, i and j
        stack = torch.zeros((3, count, decisions + 2), dtype=torch.long, device=device)
        stack[0] = items.index(self.program.goal)
        stack[2, :, 0] = last
        depth = (last > 0).long()  # an item of width 0 has nothing to decide
        words = self.program.parts(lengths, size).diagonal(0, 1, 2)
        trees = torch.diag_embed(words.to(scores)).repeat(samples, 1, 1)
        flat_uniforms = uniforms.flatten(0, 1)
        split = torch.arange(size, device=device)

        for step in range(decisions):
            live = depth > 0
            depth = (depth - 1).clamp(min=0)
            item, i, j = stack[:, run, depth]
            rule, new_left, new_right, least, gap, one_root, part = table[item].unbind(-1)
            head, modifier = torch.where(part < 0, j, i), torch.where(part < 0, i, j)
            trees[run, head, modifier] += (live & (part != 0)).to(trees)

            splits = j - i
            column = (size - 1 - splits[:, None] + split).clamp(max=size - 1)
            s = first[rule, sentence, i] + second[rule, sentence, j].gather(1, column)
            if single_root:
                splits = torch.where((one_root > 0) & (i == 0), 1, splits)
            weights = s.masked_fill(split >= splits[:, None], -torch.inf).softmax(-1)
            # the last split with any weight takes what rounding leaves over
            final = ((weights > 0) * (split + 1)).argmax(-1, keepdim=True)
            above = (weights.cumsum(-1) > flat_uniforms[:, step, None]) | (split == final)
            k = i + least + above.to(torch.uint8).argmax(-1)

            # push the right antecedent, then the left one, which is taken first
            for new in (torch.stack((new_right, k + gap, j)), torch.stack((new_left, i, k))):
                push = live & (new[1] < new[2])
                stack[:, run, depth] = torch.where(push, new, stack[:, run, depth])
                depth = depth + push.long()
        trees = trees.reshape(samples, batch, size, size)
        return trees, self.goal(chart, lengths) + taken_off
