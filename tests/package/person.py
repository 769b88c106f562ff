"""A skill in the words of a person, about the runs of the made package: short and true."""

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
