"""Records what peft's adapters compute, for `test_adapters.py`: files, logits and gradients of tiny models.

python tests/train/record_peft.py       with peft 0.21 beside what requirements-dev.txt has
"""

import json
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).parents[1] / "golden" / "peft"
IDS = np.random.default_rng(0).integers(0, 48, (2, 7))


def main() -> None:
    import peft
    import torch
    import transformers
    from safetensors.torch import save_file

    def base(kind: str):
        torch.manual_seed(0)
        shared = {"vocab_size": 48, "initializer_range": 0.3, "bos_token_id": 0, "eos_token_id": 1}
        if kind == "llama":
            config = transformers.LlamaConfig(
                hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=4,
                num_key_value_heads=2, max_position_embeddings=32, tie_word_embeddings=False, **shared,
            )  # fmt: skip
            return transformers.LlamaForCausalLM(config).eval()
        config = transformers.GPT2Config(n_embd=16, n_layer=2, n_head=2, n_positions=32, **shared)
        return transformers.GPT2LMHeadModel(config).eval()

    def lora(*targets: str, **settings):
        return peft.LoraConfig(r=2, target_modules=[*targets], init_lora_weights=False, **settings)

    cases = {
        "lora": ("llama", lora("q_proj", "v_proj", lora_alpha=16)),
        "rslora": ("llama", lora("q_proj", "up_proj", use_rslora=True, rank_pattern={"q_proj": 3})),
        "one_layer": ("llama", lora("q_proj", layers_to_transform=[1])),
        "dora": ("llama", lora("q_proj", "down_proj", use_dora=True)),
        "dora_embedding": ("llama", lora("embed_tokens", "o_proj", use_dora=True)),
        "embedding_and_head": ("llama", lora("embed_tokens", "o_proj", modules_to_save=["lm_head"])),
        "gpt2": ("gpt2", lora("c_attn", fan_in_fan_out=True, bias="lora_only")),
        "gpt2_dora": ("gpt2", lora("c_attn", fan_in_fan_out=True, use_dora=True)),
        "ia3": (
            "llama",
            peft.IA3Config(
                target_modules=["k_proj", "v_proj", "down_proj"],
                feedforward_modules=["down_proj"],
                init_ia3_weights=False,
            ),
        ),
        "prompt": ("llama", peft.PromptTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=3)),
    }
    for kind in ("llama", "gpt2"):
        base(kind).save_pretrained(FOLDER / kind)
    for name, (kind, config) in cases.items():
        model = peft.get_peft_model(base(kind), config).eval()
        with torch.no_grad():
            for p in model.parameters():
                if p.requires_grad:
                    p.add_(torch.randn_like(p) * 0.1)
        model.save_pretrained(FOLDER / name)
        (FOLDER / name / "README.md").unlink(missing_ok=True)
        ids = torch.tensor(IDS)
        out = model(input_ids=ids, attention_mask=torch.ones_like(ids), labels=ids)
        out.loss.backward()
        found = {"logits": out.logits.detach(), "loss": out.loss.detach()}
        found |= {n: p.grad for n, p in model.named_parameters() if p.requires_grad}
        save_file({k: v.contiguous() for k, v in found.items()}, FOLDER / name / "expected.safetensors")
    (FOLDER / "ids.json").write_text(json.dumps(IDS.tolist()))


if __name__ == "__main__":
    main()
