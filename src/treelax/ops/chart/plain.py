"""Chart programs as one vectorised step per rule and span width; runs wherever PyTorch runs.

An item that a rule has as its left operand lives in a plane ``(N, N, B)`` anchored left,
``XL[i, o] = X(i, i+o)``; as a right operand, in one anchored right, ``XR[j, N-1-p] = X(j-p, j)``. So all
splits of all spans of a width are a plain slice, with the batch innermost so that PyTorch's loops are
long. With ``w = j - i`` and ``R = N - w`` spans of that width, Eisner's are

    U(i,j):   CrL[0:R, 0:w]   + ClR[w:N, N-w:N]          k = i … j-1
    C→(i,j):  IrL[0:R, 1:w+1] + CrR[w:N, N-w:N]          k = i+1 … j
    C←(i,j):  ClL[0:R, 0:w]   + IlR[w:N, N-1-w:N-1]      k = i … j-1

A rule with several pairs of operands chooses among the splits of all of them, one pair after another.
The four sweeps and their derivation are in the README of `treelax.ops.eisner`. Memory is O(n²) a
sentence: the weights ``b`` of the splits are recomputed in every sweep.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce
from math import prod
from typing import TypeVar

import torch
from torch import Tensor

from treelax.ops.backend import FORBIDDEN, NO_TREE, Batch, bounded
from treelax.ops.chart.centring import needs_centring
from treelax.ops.chart.rules import Item, Operands, Program, Rule

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
        pairs = [pair for rule in self.rules for pair in rule.operands]
        self.left = dict.fromkeys([*(pair.left for pair in pairs), program.goal])
        self.right = dict.fromkeys(pair.right for pair in pairs if pair.right is not None)
        #: Rules whose choices have a plane of values; those of others are left operands as they are.
        self.choices = [r for r in self.rules if r.makes[0].part or r.makes[0] not in self.left]
        self.operands = len(self.left) + len(self.right)
        self.values = self.operands + len(self.choices)
        self.planes = self.values + 3 * len(self.rules)
        #: The first item, from the top down, of each part.
        items = [item for rule in self.rules for item in rule.makes[::-1] if item.part]
        self.first = {item.entry(0, 1): item for item in items}.values()


class Chart:
    """Planes ``(planes, N, N, B)``, all or the first ones, and their slices by width.

    Slices are ``(R, w, B)`` for splits and ``(R, B)`` for spans.
    """

    def __init__(self, layout: Layout, planes: Tensor, single_root: bool = False) -> None:
        self.planes, self.first = planes, layout.first
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

    def operands(self, pair: Operands, width: int) -> list[Tensor]:
        """The left and the right operands of all splits, or the lone one."""
        left, rows = self.left[pair.left], self.size - width
        if pair.right is None:
            return [left[:rows, width : width + 1]]
        stop = self.size - 1 + pair.first + pair.gap
        right = self.right[pair.right][width:, stop - width : stop]
        return [left[:rows, pair.first : pair.first + width], right]

    def splits(self, rule: Rule, width: int) -> Tensor:
        """Sums over both operands of every split."""
        sums = []
        for pair in rule.operands:
            left, *right = self.operands(pair, width)
            sums.append(left + right[0] if right else left.clone())
            if self.single_root and rule.one_root:
                sums[-1][0, 1:] = EXCLUDED
        return sums[0] if len(sums) == 1 else torch.cat(sums, 1)

    def hand_down(self, rule: Rule, width: int, shares: Tensor) -> None:
        """Add to both operands of every split."""
        operands = [self.operands(pair, width) for pair in rule.operands]
        counts = [pair[0].shape[1] for pair in operands]
        for pair, share in zip(operands, shares.split(counts, 1), strict=True):
            for items in pair:
                items.add_(share)

    def items(self, item: Item, width: int) -> list[Tensor]:
        """The items of a width, in the planes that have them."""
        items = [at(self.left[item], width)] if item in self.left else []
        if item in self.right:
            items.append(self.right[item][width:, -1 - width])
        return items

    def place(self, rule: Rule, width: int, value: Tensor, scores: Tensor) -> None:
        """Write the values of choices, and with scores ``(B, N, N, …)`` the items that they make."""
        if rule in self.choices:
            at(self.choices[rule], width).copy_(value)
        for item in rule.makes:
            scored = value + part(scores, item, width) if item.part else value
            for items in self.items(item, width):
                items.copy_(scored)

    def collect(self, rule: Rule, width: int, parts: Tensor) -> Tensor:
        """What the items that a rule makes have been given; parts are added up in ``(B, N, N, …)``."""
        totals = []
        for item in rule.makes:
            totals.append(reduce(torch.add, self.items(item, width)))
            if item in self.first:
                part(parts, item, width).copy_(totals[-1])
            elif item.part:
                part(parts, item, width).add_(totals[-1])
        return reduce(torch.add, totals)


def at(plane: Tensor, width: int) -> Tensor:
    """The spans of a width in a plane anchored left, ``(R, B)``."""
    return plane[: plane.shape[0] - width, width]


def part(parts: Tensor, item: Item, width: int) -> Tensor:
    """The parts ``(B, N, N, …)`` that the items of a width are, ``(R, B)``."""
    of_label = parts if item.label is None else parts[..., item.label]
    return of_label.diagonal(item.part * width, 1, 2).mT


class PlainBackend:
    """The backend `diagonal` of a chart program."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.layout = Layout(program)

    def inside(self, given: Batch, fill: Fill) -> Chart:
        """Sweep 1, bottom-up: the values of all items, with maximum and normaliser of every cell."""
        scores, lengths, _, single_root = given
        size = scores.shape[1]
        weights = bounded(scores, self.program.parts(lengths, size))
        planes = weights.new_zeros(self.saved_shape(scores.shape, scores.dtype))
        chart, nothing = Chart(self.layout, planes, single_root), weights.new_zeros(())
        for item in chart.left | chart.right:
            for items in chart.items(item, 0) if not item.empty else ():
                items.fill_(FORBIDDEN)
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

    def whole(self, chart: Chart, lengths: Tensor, share: Tensor) -> Chart:
        """Zeros for what items will be given, and a ``share`` for whole sentences."""
        shares = Chart(self.layout, torch.zeros_like(chart.planes[: self.layout.operands]))
        position = torch.arange(chart.size, device=lengths.device)[:, None]
        is_last = position == self.program.last(lengths)
        shares.left[self.program.goal][0] = torch.where(is_last, share, 0)
        return shares

    def outside(self, chart: Chart, scores: Tensor, lengths: Tensor, weights: Weights) -> Tensor:
        """Sweep 2, top-down: contributions, kept in the chart; returns the tree."""
        shares = self.whole(chart, lengths, chart.planes.new_ones(()))
        tree = scores.new_zeros(scores.shape)
        for width in reversed(self.program.widths(chart.size)):
            for rule in reversed(self.program.rules):
                a = shares.collect(rule, width, tree)
                if width > 0:
                    at(chart.contribution[rule], width).copy_(a)
                    top, scale = at(chart.top[rule], width), at(chart.scale[rule], width)
                    b = weights(chart.splits(rule, width), top, scale)
                    shares.hand_down(rule, width, b.mul_(a[:, None]))
        return tree

    def up(self, chart: Chart, grad_tree: Tensor) -> Chart:
        """Sweep 3, bottom-up: adjoints of all contributions, ``ḡ = Σ b_k g_k``, in planes of values."""
        grad = Chart(self.layout, torch.zeros_like(chart.planes[: self.layout.values]))
        nothing = grad_tree.new_zeros(())
        for width in self.program.widths(chart.size):
            for rule in self.program.rules:
                mean = nothing
                if width > 0:
                    top, scale = at(chart.top[rule], width), at(chart.scale[rule], width)
                    b = soft_weights(chart.splits(rule, width), top, scale)
                    mean = b.mul_(grad.splits(rule, width)).sum(1)
                grad.place(rule, width, mean, grad_tree)
        return grad

    def down(self, chart: Chart, grad: Chart, grad_value: Tensor, given: Batch) -> Tensor:
        """Sweep 4, top-down: the adjoints of all values; returns the gradient of the scores."""
        lengths, grad_scores = given.lengths, torch.zeros_like(given.scores)
        shares = self.whole(chart, lengths, grad_value)
        for width in reversed(self.program.widths(chart.size)):
            for rule in reversed(self.program.rules):
                gv = shares.collect(rule, width, grad_scores)
                if width == 0:
                    continue
                # ds_k = b_k [ gv (1 + (s_k - v)) + a (g_k - ḡ) ], without s_k - v for entropy
                s, a = chart.splits(rule, width), at(chart.contribution[rule], width)
                offset = gv - a * at(grad.value[rule], width)
                bracket = grad.splits(rule, width).mul_(a[:, None]).add_(offset[:, None])
                if given.relaxation == "softmax":
                    # b_k is 0 long before the clamp, which keeps 0 · inf out
                    distance = (s - at(chart.value[rule], width)[:, None]).clamp_(min=-1e4)
                    bracket += distance.mul_(gv[:, None])
                b = soft_weights(s, at(chart.top[rule], width), at(chart.scale[rule], width))
                shares.hand_down(rule, width, b.mul_(bracket))
        return grad_scores

    def centred(self, given: Batch) -> tuple[Batch, Tensor]:
        """Scores with small chart values, where that is worth it, and what was taken off every tree.

        float64 has digits to spare.
        """
        scores = given.scores
        nothing = scores.new_zeros(scores.shape[0])
        if scores.dtype != torch.float32:
            return given, nothing
        parts = self.program.parts(given.lengths, scores.shape[1])
        weights = bounded(scores, parts)
        needed = needs_centring(weights, parts)
        if not scores.is_cuda and not bool(needed.any()):  # reading it would make a GPU wait
            return given, nothing
        tree, value = self.best_tree(given)
        needed &= value > NO_TREE
        moved, taken_off = self.program.shift(weights, tree, value)
        moved = torch.where(needed.reshape(-1, *(1 for _ in moved.shape[1:])), moved, weights)
        moved.masked_fill_(scores == float("-inf"), float("-inf"))
        return given._replace(scores=moved), taken_off.where(needed, 0)

    def saved_shape(self, shape: torch.Size, dtype: torch.dtype) -> tuple[int, ...]:
        batch, size, *_ = shape
        return (self.layout.planes, size, size, batch)

    def soft_tree(self, given: Batch, save: bool) -> tuple[Tensor, Tensor, Tensor]:
        given, offset = self.centred(given)
        chart = self.inside(given, FILLS[given.relaxation])
        tree = self.outside(chart, given.scores, given.lengths, soft_weights)
        saved = chart.planes if save else given.scores.new_empty(0)
        return tree, self.goal(chart, given.lengths) + offset, saved

    def soft_tree_backward(
        self, grad_tree: Tensor, grad_value: Tensor, saved: Tensor, given: Batch
    ) -> Tensor:
        chart = Chart(self.layout, saved, given.single_root)
        return self.down(chart, self.up(chart, grad_tree), grad_value, given)

    def log_partition(self, given: Batch) -> Tensor:
        given, offset = self.centred(given)
        return self.goal(self.inside(given, FILLS["entropy"]), given.lengths) + offset

    def best_tree(self, given: Batch) -> tuple[Tensor, Tensor]:
        chart = self.inside(given, FILLS["best"])
        tree = self.outside(chart, given.scores, given.lengths, best_weights)
        return tree, self.goal(chart, given.lengths)

    def sample_tree(self, given: Batch, uniforms: Tensor) -> tuple[Tensor, Tensor]:
        """All samples of all sentences take their decisions side by side, one per step."""
        given, taken_off = self.centred(given)
        scores, lengths, _, single_root = given
        chart = self.inside(given, FILLS["entropy"])
        (samples, batch, decisions), size, device = uniforms.shape, chart.size, scores.device
        rules = self.program.rules
        items = [item for rule in rules for item in rule.makes]
        table = torch.tensor(
            [
                (r, rule.one_root, item.part, item.label or 0)
                for r, rule in enumerate(rules)
                for item in rule.makes
            ],
            device=device,
        )
        # every rule has as many pairs; a lone operand is the last split of a pair with an empty item
        most = max(len(rule.operands) for rule in rules)
        pairs = torch.zeros((len(rules), most, 6), dtype=torch.long)
        # (rules, B, N, pairs, N): first[r, b, i, p, k] is the left operand of split k of X(i, j), and
        # second[r, b, j, p, N-1-(j-i) + k] the right one
        first, second = scores.new_zeros((2, len(rules), batch, size, most, size))
        for r, operands in enumerate(rule.operands for rule in rules):
            for p, pair in enumerate(operands):
                if pair.right is None:
                    row, shift = (items.index(pair.left), 0, 1, 0, 1, 1), 1
                else:
                    left, right = items.index(pair.left), items.index(pair.right)
                    row, shift = (left, right, pair.first, pair.gap, 1, 0), pair.first
                    right_plane = chart.right[pair.right].roll(-shift - pair.gap, 1)
                    second[r, :, :, p] = right_plane.permute(2, 0, 1)
                first[r, :, :, p] = chart.left[pair.left].roll(-shift, 1).permute(2, 0, 1)
                pairs[r, p] = torch.tensor(row)
        pairs = pairs.to(device)

        count = samples * batch
        run = torch.arange(count, device=device)
        sentence = run % batch
        last = self.program.last(lengths)[sentence]
        # items, i and j
        stack = torch.zeros((3, count, decisions + 2), dtype=torch.long, device=device)
        stack[0] = items.index(self.program.goal)
        stack[2, :, 0] = last
        depth = (last > 0).long()  # an item of width 0 has nothing to decide
        words = self.program.parts(lengths, size).diagonal(0, 1, 2).reshape(batch, size)
        trees = scores.new_zeros((count, size, size, prod(scores.shape[3:])))
        trees.diagonal(0, 1, 2)[:, 0] = words.repeat(samples, 1).to(scores)
        flat_uniforms = uniforms.flatten(0, 1)
        split = torch.arange(size, device=device)
        choice = torch.arange(most * size, device=device)

        for step in range(decisions):
            live = depth > 0
            depth = (depth - 1).clamp(min=0)
            item, i, j = stack[:, run, depth]
            rule, one_root, part, label = table[item].unbind(-1)
            head, modifier = torch.where(part < 0, j, i), torch.where(part < 0, i, j)
            trees[run, head, modifier, label] += (live & (part != 0)).to(trees)

            width = (j - i)[:, None]
            column = (size - 1 - width + split).clamp(max=size - 1)[:, None].expand(-1, most, -1)
            s = first[rule, sentence, i] + second[rule, sentence, j].gather(2, column)
            *_, some, lone = pairs[rule].unbind(-1)
            stop = width * some
            if single_root:
                stop = torch.where(((one_root > 0) & (i == 0))[:, None], stop.clamp(max=1), stop)
            start = lone * (width - 1)
            missing_splits = (split < start[..., None]) | (split >= stop[..., None])
            weights = s.masked_fill(missing_splits, -torch.inf).flatten(1).softmax(-1)
            # the last split with any weight takes what rounding leaves over
            final = ((weights > 0) * (choice + 1)).argmax(-1, keepdim=True)
            above = (weights.cumsum(-1) > flat_uniforms[:, step, None]) | (choice == final)
            chosen = above.to(torch.uint8).argmax(-1)
            new_left, new_right, least, gap, *_ = pairs[rule, chosen // size].unbind(-1)
            k = i + least + chosen % size

            # push the right antecedent, then the left one, which is taken first
            for new in (torch.stack((new_right, k + gap, j)), torch.stack((new_left, i, k))):
                push = live & (new[1] < new[2])
                stack[:, run, depth] = torch.where(push, new, stack[:, run, depth])
                depth = depth + push.long()
        trees = trees.reshape(samples, *scores.shape)
        return trees, self.goal(chart, lengths) + taken_off
