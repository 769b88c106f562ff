"""A miniature checkout in the shapes of NeMo Gym's: resources server, flavours, nested benchmarks, manifests."""

from __future__ import annotations

from pathlib import Path

FILES = {
    "resources_servers/sums/configs/sums.yaml": """
sums:
  resources_servers:
    sums:
      entrypoint: app.py
      domain: math
      description: Adds numbers, with a judge for the odd ones
      value: Better sums
      judge_model_server:
        type: responses_api_models
        name: policy_model
      judge_responses_create_params: {
        input: []
      }
      should_use_judge: false
sums_simple_agent:
  responses_api_agents:
    simple_agent:
      entrypoint: app.py
      resources_server:
        type: resources_servers
        name: sums
      model_server:
        type: responses_api_models
        name: policy_model
      datasets:
      - name: example
        type: example
        jsonl_fpath: resources_servers/sums/data/example.jsonl
""",
    "resources_servers/sums/configs/judged.yaml": """
config_paths:
- resources_servers/sums/configs/sums.yaml
sums:
  resources_servers:
    sums:
      should_use_judge: true
      judge_prompt: ???
""",
    "benchmarks/addition/config.yaml": """
# Chain to the generic config.
config_paths:
  - resources_servers/sums/configs/sums.yaml

addition_sums_resources_server:
  _inherit_from: sums
addition_sums_simple_agent:
  _inherit_from: sums_simple_agent
  responses_api_agents:
    simple_agent:
      resources_server:
        name: addition_sums_resources_server
      datasets:
      - name: addition
        type: benchmark
        jsonl_fpath: benchmarks/addition/data/addition_benchmark.jsonl
        prompt_config: benchmarks/prompts/generic/sum.yaml
        prepare_script: benchmarks/addition/prepare.py
        num_repeats: 32
        license: MIT
""",
    "benchmarks/addition/manifest.yaml": """
name: addition
version: 0.1.0
experimental: true
kind: benchmark
domain: math
description: Sums of two numbers
modality: text
licensing: MIT
lifecycle: active
choose:
  task_fit: arithmetic, nothing else
  variance: "±2 points at 32 repeats"
published:
- result: "81.2%"
  model: some-model
  source: https://example.org/card
  conditions: greedy, 1 repeat
""",
    "benchmarks/addition/prepare.py": "raise SystemExit('a listing must not run this')\n",
    "benchmarks/addition/harness.yaml": """
config_paths:
- benchmarks/addition/config.yaml
addition_harness_agent:
  _inherit_from: addition_sums_simple_agent
addition_sums_simple_agent: null
""",
    "benchmarks/prompts/generic/sum.yaml": "user: 'Add {question}'\n",
    "benchmarks/swebench/verified/opencode.yaml": """
swe_resources_server:
  resources_servers:
    swe: {entrypoint: app.py, domain: coding, description: Patches of repositories}
swe_agent:
  responses_api_agents:
    opencode_agent:
      resources_server: {type: resources_servers, name: swe_resources_server}
      model_server: {type: responses_api_models, name: policy_model}
      sandbox: ${oc.env:A_VARIABLE_THAT_NOBODY_SETS}
      datasets:
      - {name: swe, type: benchmark, jsonl_fpath: swe.jsonl, prepare_script: benchmarks/addition/prepare.py, num_repeats: 3}
""",
    "benchmarks/answer-judge/config.yaml": """
aj:
  resources_servers:
    proofs: {entrypoint: app.py, domain: math, description: Is this proof right}
aj_agent:
  responses_api_agents:
    simple_agent:
      resources_server: {type: resources_servers, name: aj}
      model_server: {type: responses_api_models, name: policy_model}
      datasets:
      - {name: aj, type: benchmark, jsonl_fpath: aj.jsonl, prepare_script: benchmarks/addition/prepare.py}
""",
    "environments/office/config.yaml": """
config_paths: [resources_servers/sums/configs/sums.yaml]
office_agent:
  responses_api_agents:
    office_agent:
      entrypoint: app.py
      description: An agent that brings its own tasks
""",
    "responses_api_models/cloud_model/configs/cloud_model.yaml": """
policy_model:
  responses_api_models:
    cloud_model:
      entrypoint: app.py
      base_url: ${policy_base_url}
      api_key: ${policy_api_key}
      model: ${policy_model_name}
      headers: {authorization: "Bearer ${policy_api_key}"}
""",
    "responses_api_agents/office_agent/configs/office_agent.yaml": """
office_agent:
  responses_api_agents:
    office_agent: {entrypoint: app.py, description: Brings its own tasks}
""",
    "responses_api_agents/office_agent/app.py": "raise SystemExit('a listing must not run this')\n",
}


def write(root: Path, **more: str) -> Path:
    """Write the checkout below `root`."""
    for name, text in {**FILES, **more}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root
