"""Write the results table of both READMEs from what was measured: docs/performance.md, docs/results/, docs/learning/.

python docs/readme_results.py        # `make results` does this too
"""

import json
import re
from pathlib import Path

DOCS = Path(__file__).parent
BETWEEN = re.compile(r"(?<=<!-- results: begin -->\n).*?(?=<!-- results: end -->)", re.DOTALL)
ENGLISH = """\
| question | answer |
|---|---|
| Same numbers as `transformers`? | states and logits within 1e-5, gradients within 1e-4 |
| How fast is training (ALBERT-base)? | {train} × `transformers`, with {memory} × its memory |
| What does an hour on two cores teach? | {ours} % of masked n-grams; `transformers` in the same time {theirs} % |
| How fast is fine-tuning? | {tune_best} × the `transformers` Trainer at its best, {tune_default} × its default |
| How fast is int8 inference? | {int8} × `pipeline()` on sentences |
| Is resuming exact? | after ten SIGKILLs, every weight and metric is the same byte |
| Does SOP beat NSP, as the paper says? | on order {sop} % against {nsp} % (chance: 50, bag of words: {words}) |
| Does sharing cost accuracy? | {share_all} points of masked-token accuracy (all), {share_attention} (attention only) |
"""
CHINESE = """\
| 问题 | 答案 |
|---|---|
| 数值与 `transformers` 一致吗？ | 隐藏状态和 logits 相差不超过 1e-5，梯度不超过 1e-4 |
| 训练速度如何（ALBERT-base）？ | `transformers` 的 {train} 倍，内存为其 {memory} 倍 |
| 双核训练一小时能学到什么？ | 猜对 {ours} % 的掩码 n-gram；`transformers` 用同样时间为 {theirs} % |
| 微调速度如何？ | 是 `transformers` Trainer 最佳设置的 {tune_best} 倍，默认设置的 {tune_default} 倍 |
| int8 推理速度如何？ | 处理句子时是 `pipeline()` 的 {int8} 倍 |
| 断点续训精确吗？ | 十次 SIGKILL 之后，每个权重和指标都逐字节相同 |
| SOP 是否如论文所说优于 NSP？ | 判断顺序：{sop} % 对 {nsp} %（随机猜测 50，词袋 {words}） |
| 参数共享会损失精度吗？ | 掩码词准确率下降 {share_all} 个百分点（全部共享）、{share_attention}（只共享注意力） |
"""
PAGES = {"README.md": ENGLISH, "README.zh-CN.md": CHINESE}


def collect() -> dict[str, str]:
    """The numbers of the table, as they are printed."""
    studies = {
        study["study"]: study["table"] for study in json.loads((DOCS / "results/results.json").read_text("utf-8"))
    }
    five = {(row["arm"], row["metric"]): row for row in studies["table-5"]}
    four = {(row["arm"], row["metric"]): row for row in studies["table-4"]}
    speeds = (DOCS / "performance.md").read_text("utf-8")

    def find(pattern: str) -> str:
        found = re.search(pattern, speeds)
        if found is None:
            raise SystemExit(f"docs/performance.md has no line like {pattern!r}")
        return found[1]

    return {
        "train": find(r"\| Training ALBERT-base \| ([\d.]+) times"),
        "memory": find(r"\| Memory of training ALBERT-base \| ([\d.]+) of"),
        "tune_best": find(r"\| Fine-tuning ALBERT-base, SST-2 lengths \| ([\d.]+) times"),
        "tune_default": find(r"\| Fine-tuning ALBERT-base, SST-2 lengths \|.* at its best, ([\d.]+) times its default"),
        "int8": find(r"\| Inference, ALBERT-base int8, SST-2 lengths \| ([\d.]+) times"),
        "ours": _masked("litebert-120"),
        "theirs": _masked("transformers-120"),
        "sop": f"{five['sop', 'sop']['mean']:.0f}",
        "nsp": f"{five['nsp', 'sop']['mean']:.0f}",
        "words": f"{five['sop', 'sop']['without_network']:.0f}",
        "share_all": f"{-four['e768-all', 'mlm']['difference']:.1f}",
        "share_attention": f"{-four['e768-attention', 'mlm']['difference']:.1f}",
    }


def _masked(name: str) -> str:
    """Masked-token accuracy of the runs of that name, the mean of their seeds, in per cent."""
    runs = [json.loads(path.read_text("utf-8")) for path in sorted((DOCS / "learning").glob(f"{name}-*.json"))]
    values = [run["measured"]["mlm"]["hidden"]["value"] for run in runs]
    return f"{100 * sum(values) / len(values):.1f}"


def fill(page: str, table: str) -> str:
    """The page with this table between its marks."""
    return BETWEEN.sub(lambda _: table, page)


if __name__ == "__main__":
    numbers = collect()
    for name, template in PAGES.items():
        path = DOCS.parent / name
        path.write_text(fill(path.read_text("utf-8"), template.format(**numbers)), "utf-8")
