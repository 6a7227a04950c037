"""Four causal attentions of one size; ``python causal_forms.py NAME`` prints KiB."""

import sys
from pathlib import Path

import torch
from torch.nn.functional import scaled_dot_product_attention

from coursekit.alibi import alibi_bias, causal_alibi
from coursekit.attention import attention, causal_mask

HEADS, LENGTH, HEAD_DIM = 8, 4096, 64


def inputs(length: int = LENGTH):
    generator = torch.Generator().manual_seed(0)
    shape = (3, 1, HEADS, length, HEAD_DIM)
    return (*torch.randn(shape, generator=generator), torch.arange(length))


def folded(query, key, value, positions):
    return causal_alibi(query, key, value, positions)


def bias_and_softmax(query, key, value, positions):
    scores = query @ key.mT * HEAD_DIM**-0.5
    logits = scores + alibi_bias(HEADS, positions, positions)
    logits = logits.masked_fill(~causal_mask(positions, positions), -torch.inf)
    return logits.softmax(-1) @ value


def every_step(query, key, value, positions):
    bias = alibi_bias(HEADS, positions, positions)
    mask = causal_mask(positions, positions)
    return attention(query, key, value, bias=bias, mask=mask).output


def no_bias(query, key, value, positions):
    return scaled_dot_product_attention(query, key, value, is_causal=True)


FORMS = {
    form.__name__: form for form in (folded, bias_and_softmax, every_step, no_bias)
}


def status(name: str) -> int:
    """Read a size of this process, in KiB, as Linux gives it."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name))


def peak_kib(form) -> int:
    """Measure how far memory rises above what the inputs and libraries take."""
    with torch.no_grad():
        form(*inputs(64))  # first calls load code, which is not the method's memory
        arguments = inputs()
        Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here
        before = status("VmRSS")
        form(*arguments)
    return status("VmHWM") - before


if __name__ == "__main__":
    torch.set_num_threads(1)
    print(peak_kib(FORMS[sys.argv[1]]))
