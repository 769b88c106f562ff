"""A skill and a golden report in the words of a person, about the first run of the made package: short and true."""

from __future__ import annotations

SKILL = """---
name: sim-help-desk
description: Explains how to read rollouts of the simulated help desk, and which tickets go wrong and why.
---

# Reading the help desk

## Overview

A clerk hands the agent one ticket. The agent has to find the right order and change it, once.
Reward is 1 if the orders table ends up as wanted, else 0. Nothing in between.

## Input schema

- `_ng_task_index`: which ticket
- `_ng_rollout_index`: which try at it
- `reward`
- `response.output`: everything the agent did
- `db_match`, `verifier_message`: what the checker saw
- `category`, `difficulty`: good for slicing

## Workflow funnel

1. looked the customer up
2. tried an update
3. orders table is right

Somebody who updates without a lookup is guessing.

## Failure taxonomy

- **wrong order**: `update_order` was given an id that `search_orders` never returned
- **locked order ignored**: the update came back with an error and the agent said "done" anyway
- **ran out of room**: `extracted_answer` is null because the token limit hit first

Give each failed ticket one of these. If none fits, say so.

## Analysis workflow

Counts first. Then open tickets that pass in some tries and not in others, and put a good one next to a bad one.
Only then write down why.

## Report template

- Summary
- What was run
- Scores
- Where it goes wrong, with tickets
- What to change
- How to run it again
"""

REPORT = """# Help desk, first model

## Summary

The model scores 67.2% pass@1 on 16 tasks, four tries at each, so 64 rollouts. Six tasks pass every time,
nine pass in some tries, and one, task 8, never passes.

What hurts most is that the agent carries on after an error as if nothing had happened.

## What was run

One file of rollouts, none missing. All 64 rows have a reward.

| What | How many |
| --- | ---: |
| tasks | 16 |
| rollouts | 64 |
| rollouts that passed | 43 |

## Scores

| Number | Value |
| --- | ---: |
| pass@1 | 67.2% |
| pass@4 | 93.8% |

## Locked orders

Task 14 fails for a behavioural issue (BI): the agent ignores an error.
Rollout 14/1 goes wrong at step 9: the update is refused and the customer hears that all is well.

At step 10 of rollout 14/1 the tool says:

> Error: order O-20143 is locked by the packing line, nothing was changed.

Task 2 fails for a behavioural issue (BI) as well.
Rollout 2/2 goes wrong at step 8, the same story, and step 9 of it reads:

> Error: order O-20023 is locked by the packing line, nothing was changed.

## Wrong orders

Task 8 fails for a knowledge gap (KG): all four tries change an order that belongs to somebody else.
Rollout 8/0 goes wrong at step 4, where it passes a made-up number:

> {"order_id":"O-20088","action":"exchange","value":"green lamp 32"}

Task 4 fails for unreliable knowledge (UK): two tries get the number right, two do not.
Rollout 4/1 goes wrong at step 4:

> {"order_id":"O-20048","action":"refund","value":"44.40"}

## What to change

1. For tasks 2 and 14 (BI): before the last message, show the agent which of its updates were refused.
2. For tasks 4 and 8: have it look the customer up before it may touch an order.
"""
