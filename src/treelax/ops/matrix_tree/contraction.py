"""The best non-projective tree in vectorised PyTorch: Edmonds's contraction along a path, O(n²).

Every word starts as a node. A path of nodes grows from its end ``top`` to the best head of ``top``: to
a new node; or to the root or a node that is already connected to it, which connects the whole path;
or to a node of the path, and the cycle becomes one node in its place, which takes one step for each
of its members. An arc into a node counts by what it gains over the arc that the node chose before
(Tarjan 1977). Every node chooses once and is merged at most once, and all sentences take their steps
side by side.

Scores are compared as (rank, score): a forbidden arc, and with one root an arc from the root, costs rank
rather than a large number that would swallow the score's digits.
"""

from __future__ import annotations

import torch
from torch import Tensor

from treelax.ops.backend import NO_TREE

NEW, CONNECTED = 0, -1  # where a node is if not on the path, whose places count from 1


def best_heads(scores: Tensor, arcs: Tensor, single_root: bool) -> Tensor:
    """Head of every word ``(B, N)``, from scores as `bounded` gives them and the arcs of sentences."""
    batch, size, _ = scores.shape
    device = scores.device
    forbidden = scores <= NO_TREE
    # of the arc into node c from word h, at [c, h]; a node goes by the position of one of its words
    score = scores.masked_fill(forbidden, 0).mT.contiguous()
    rank = torch.where(arcs, -forbidden.to(score), -torch.inf).mT.contiguous()
    if single_root:  # a second root is worse than any number of forbidden arcs
        rank[:, :, 0] -= 2 * size
    position = torch.arange(size, device=device)
    modifier = position[:, None].repeat(batch, 1, size)

    run = torch.arange(batch, device=device)
    owner = position.repeat(batch, 1)  # of a word: the position that its node goes by
    number = owner.clone()  # of the node that goes by a position; cycles count from N
    place = torch.where(arcs.any(1), NEW, CONNECTED)  # of that node on the path
    path = torch.zeros_like(owner)  # the node at a place
    depth, top, goal, cycles = run.new_zeros((4, batch))  # goal: where the open cycle begins, or 0
    chosen = run.new_zeros((2, batch, 2 * size))  # head and modifier of the arc into a node
    members = torch.zeros((batch, 2 * size, size), dtype=torch.bool, device=device)
    members[:, :size] = torch.eye(size, dtype=torch.bool, device=device)
    settled = torch.ones_like(members[..., 0])  # the node needs no arc, or is none

    def at_top(mask: Tensor) -> Tensor:
        """``(B, N)``, true at the position of the top node of these sentences."""
        return mask[:, None] & (position == top[:, None])

    for _ in range(max(3 * size - 5, 0)):
        # merge the top of an open cycle into the node below
        merges = goal > 0
        below = torch.where(merges, path[run, depth - 1], top)
        upper, lower = (torch.stack((rank[run, c], score[run, c])) for c in (top, below))
        better = (upper[0] > lower[0]) | ((upper[0] == lower[0]) & (upper[1] > lower[1]))
        rank[run, below], score[run, below] = torch.where(better, upper, lower)
        modifier[run, below] = torch.where(better, modifier[run, top], modifier[run, below])
        owner = torch.where(owner == top[:, None], below[:, None], owner)
        top, depth = below, depth - merges.long()
        completes = merges & (depth == goal)
        goal = torch.where(completes, 0, goal)
        number = torch.where(at_top(completes), (size + cycles)[:, None], number)
        members[run, torch.where(completes, size + cycles, 0)] = owner == top[:, None]
        cycles = cycles + completes.long()

        # choose the best arc into the top, from outside of it
        fresh = place == NEW
        chooses = ((depth > 0) | fresh.any(1)) & (goal == 0)
        on_cpu = score.device.type == "cpu"  # reading it would make a GPU wait
        if on_cpu and not bool((chooses | (goal > 0)).any()):
            break
        starts = chooses & (depth == 0)
        top = torch.where(starts, fresh.to(torch.uint8).argmax(1), top)
        depth = depth + starts.long()
        place = torch.where(at_top(starts), 1, place)
        ranks = rank[run, top].masked_fill(owner == top[:, None], -torch.inf)
        best = ranks.amax(1, keepdim=True)
        gain, head = score[run, top].masked_fill(ranks < best, -torch.inf).max(1)
        rank[run, top] -= torch.where(chooses[:, None], best, 0)
        score[run, top] -= torch.where(chooses, gain, 0)[:, None]
        node = torch.where(chooses, number[run, top], 0)  # 0 is the root's, which is not looked at
        chosen[:, run, node] = torch.stack((head, modifier[run, top, head]))
        settled[run, node] = False

        # follow it
        path[run, depth] = top
        target = owner[run, head]
        found = place[run, target]
        goal = torch.where(chooses & (found > 0), found, goal)
        connects, grows = chooses & (found == CONNECTED), chooses & (found == NEW)
        place = torch.where(connects[:, None] & (place > 0), CONNECTED, place)
        depth = torch.where(connects, 0, depth + grows.long())
        top = torch.where(grows, target, top)
        place = torch.where(at_top(grows), depth[:, None], place)

    # the arc into a node enters one word, and with it every smaller node that holds the word
    heads = torch.zeros_like(owner)
    for node_number in range(2 * size - 1, 0, -1):
        head, word = chosen[:, :, node_number]
        expands = ~settled[:, node_number, None]
        heads = torch.where(expands & (position == word[:, None]), head[:, None], heads)
        settled |= expands & members[run, :, word]
    return heads
