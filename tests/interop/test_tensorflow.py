"""The reader of tensor bundles: exact on what TensorFlow wrote, and never fooled by what is damaged."""

import random
from pathlib import Path

import numpy as np
import pytest
import torch
from bundles import BundleOptions, bytes_field, entry, number_field, raw_bytes, table, write_bundle
from hypothesis import given
from hypothesis import strategies as st
from refusals import refuses
from torch import Tensor

from litebert.core.errors import DataError
from litebert.interop.crc32c import crc32c, masked_crc32c
from litebert.interop.tensorflow import DTYPES, open_bundle, read_index

TOY = "tf/toy_albert/model.ckpt-best"
HEADER = (b"", number_field(1, 1))


def make_tensors(num_tensors: int = 40) -> dict[str, Tensor]:
    """Tensors of every type and awkward shapes, under names with long common beginnings."""
    generator = torch.Generator().manual_seed(5)
    shapes = [(), (1,), (3,), (0, 4), (2, 3), (5, 1, 2)]
    tensors = {}
    for number in range(num_tensors):
        values = torch.randn(shapes[number % len(shapes)], generator=generator) * 100
        name = f"bert/encoder/{'a_very_long_scope/' * 5}layer_{number // 3}/{number}/kernel"
        tensors[name] = values.to(list(DTYPES.values())[number % len(DTYPES)])
    return tensors


def same(ours: Tensor, expected: Tensor) -> bool:
    return ours.dtype == expected.dtype and ours.shape == expected.shape and raw_bytes(ours) == raw_bytes(expected)


@pytest.mark.parametrize(
    ("data", "expected"),
    [(b"", 0), (b"123456789", 0xE3069283), (bytes(32), 0x8A9136AA), (bytes([255] * 32), 0x62A8AB43)],
)
def test_the_checksum_is_that_of_the_published_vectors(data: bytes, expected: int) -> None:
    assert crc32c(data) == expected  # RFC 3720, appendix B.4


@given(st.binary(max_size=200), st.integers(0, 7))
def test_the_checksum_does_not_depend_on_how_eight_bytes_fall(data: bytes, start: int) -> None:
    crc = 0xFFFFFFFF  # one bit at a time
    for byte in data[start:]:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    assert crc32c(memoryview(data)[start:]) == crc ^ 0xFFFFFFFF


def test_what_tensorflow_wrote_is_read_to_the_bit(real_data: Path) -> None:
    bundle = open_bundle(real_data / TOY)
    values = np.load(real_data / "tf/toy_albert/values.npz")
    for name in values:
        assert same(bundle.read(name), torch.as_tensor(values[name])), name
    others = bundle.variables.keys() - set(values)
    assert {name.rsplit("/")[-1] for name in others} == {"adam_m", "adam_v"}
    assert len(others) == 64


def test_the_index_of_a_published_model_lists_its_variables(real_data: Path) -> None:
    index = read_index(real_data / "tf/google_albert_base_zh/model.ckpt-best.index")
    assert (len(index.variables), index.num_shards) == (33, 1)
    shapes = {name: variable.shape for name, variable in index.variables.items()}
    assert shapes["bert/embeddings/word_embeddings"] == (21128, 128)
    assert shapes["bert/encoder/transformer/group_0/inner_group_0/ffn_1/intermediate/dense/kernel"] == (768, 3072)
    assert shapes["global_step"] == ()


@pytest.mark.parametrize("num_shards", [1, 2, 7])
@pytest.mark.parametrize("block_size", [1, 400, 1 << 18])
@pytest.mark.parametrize("gap", [0, 1])
def test_shards_blocks_and_alignment_do_not_change_what_is_read(
    num_shards: int, block_size: int, gap: int, tmp_path: Path
) -> None:
    tensors = make_tensors()
    write_bundle(tmp_path / "model.ckpt", tensors, BundleOptions(num_shards, block_size, restart_interval=3, gap=gap))
    bundle = open_bundle(tmp_path / "model.ckpt")
    assert list(bundle.variables) == sorted(tensors)
    for name, tensor in tensors.items():
        assert same(bundle.read(name), tensor), name


def read_all(prefix: Path) -> dict[str, Tensor]:
    bundle = open_bundle(prefix)
    return {name: bundle.read(name) for name in bundle.variables}


def damage_everywhere(folder: Path, file_name: str, tensors: dict[str, Tensor], places: list[int]) -> None:
    """Flip each of these bytes, then cut the file there: an error of ours that names a file, each time."""
    file = folder / file_name
    content = file.read_bytes()
    rng = random.Random(3)
    for place in places:
        flipped = bytearray(content)
        flipped[place] ^= 1 << rng.randrange(8)
        for damaged in (bytes(flipped), content[:place]):
            file.write_bytes(damaged)
            with pytest.raises(DataError, match=str(folder)):
                read_all(folder / "model.ckpt")
    file.write_bytes(content)
    assert all(same(ours, tensors[name]) for name, ours in read_all(folder / "model.ckpt").items())


@pytest.mark.parametrize("file_name", ["model.ckpt.index", "model.ckpt.data-00001-of-00002"])
@pytest.mark.parametrize("every", [7, pytest.param(1, marks=pytest.mark.slow)])
def test_a_flipped_byte_or_a_cut_is_found_anywhere(every: int, file_name: str, tmp_path: Path) -> None:
    tensors = make_tensors(12)
    write_bundle(tmp_path / "model.ckpt", tensors, BundleOptions(num_shards=2, block_size=300))
    size = (tmp_path / file_name).stat().st_size
    footer = range(size - 48, size)  # the one part without a checksum, each time in full
    damage_everywhere(tmp_path, file_name, tensors, sorted({*range(0, size, every), *footer} & {*range(size)}))


@pytest.mark.slow
def test_a_flipped_byte_or_a_cut_is_found_in_what_tensorflow_wrote(real_data: Path, tmp_path: Path) -> None:
    for file in (real_data / TOY).parent.glob("model.ckpt-best*"):
        (tmp_path / file.name.replace("-best", "")).write_bytes(file.read_bytes())
    tensors = read_all(tmp_path / "model.ckpt")
    tensors = {name: tensor.clone() for name, tensor in tensors.items()}
    for file in tmp_path.iterdir():
        size = file.stat().st_size
        damage_everywhere(tmp_path, file.name, tensors, list(range(0, size, max(1, size // 800))))


def write_index(folder: Path, entries: list[tuple[bytes, bytes]], compression: int = 0) -> Path:
    (folder / "model.ckpt.index").write_bytes(table(sorted(entries), BundleOptions(), compression))
    (folder / "model.ckpt.data-00000-of-00001").write_bytes(bytes(64))
    return folder / "model.ckpt"


SOUND = entry(torch.zeros(4), 0, 0, bytes(16))


@pytest.mark.parametrize(
    ("entries", "code", "place"),
    [
        ([(b"w", SOUND)], "corrupt-file", ""),
        ([(b"", number_field(1, 1) + number_field(2, 1)), (b"w", SOUND)], "unsupported-tensorflow", ""),
        ([HEADER, (b"w", SOUND + number_field(5, 12))], "corrupt-file", "w"),
        ([HEADER, (b"w", SOUND + number_field(4, 60))], "truncated-file", ""),
        ([HEADER, (b"w", SOUND + number_field(3, 4))], "corrupt-file", "data file 4"),
        ([HEADER, (b"w", SOUND + bytes_field(2, bytes_field(2, number_field(1, 1 << 62))))], "corrupt-file", "w"),
        ([HEADER, (b"w", SOUND + number_field(2, 1 << 40))], "corrupt-protobuf", "field 2"),
        ([HEADER, (b"w", SOUND + bytes_field(5, b"long"))], "corrupt-protobuf", "field 5"),
        ([HEADER, (b"w", SOUND + bytes_field(7, b""))], "unsupported-tensorflow", "w"),
        ([HEADER, (b"w", SOUND + number_field(1, 7))], "not-weights", "w"),
        ([HEADER, (b"w", SOUND + b"\x0b")], "corrupt-protobuf", "byte 16"),
        ([HEADER, (b"w", SOUND + b"\x12\x7f")], "corrupt-protobuf", "byte 17"),
        ([HEADER, (b"w", SOUND + b"\x08" + b"\xff" * 11)], "corrupt-protobuf", "byte 26"),
        ([HEADER, (b"\xff", SOUND)], "bad-encoding", ""),
    ],
)
def test_a_lying_index_is_refused_even_with_right_checksums(
    entries: list[tuple[bytes, bytes]], code: str, place: str, tmp_path: Path
) -> None:
    prefix = write_index(tmp_path, entries)
    with refuses(DataError, code, at=place) as caught:
        read_all(prefix)
    assert str(tmp_path) in str(caught.value)


def test_a_compressed_block_is_refused_by_the_name_of_its_compression(tmp_path: Path) -> None:
    with refuses(DataError, "unsupported-tensorflow"):
        open_bundle(write_index(tmp_path, [HEADER, (b"w", SOUND)], compression=1))


def test_keys_that_unpack_to_far_more_than_the_file_are_refused(tmp_path: Path) -> None:
    entries = [HEADER, *((b"k" * 5_000 + bytes([c]), SOUND) for c in range(32, 127))]
    (tmp_path / "model.ckpt.index").write_bytes(
        table(entries, BundleOptions(block_size=1 << 30, restart_interval=1000))
    )
    with refuses(DataError, "corrupt-table"):
        read_index(tmp_path / "model.ckpt.index")


def test_keys_out_of_order_are_refused(tmp_path: Path) -> None:
    (tmp_path / "model.ckpt.index").write_bytes(table([HEADER, (b"w", SOUND), (b"v", SOUND)], BundleOptions()))
    with refuses(DataError, "corrupt-table"):
        read_index(tmp_path / "model.ckpt.index")


def test_a_missing_data_file_is_named_with_a_variable_that_it_holds(tmp_path: Path) -> None:
    prefix = write_index(tmp_path, [HEADER, (b"w", SOUND)])
    (tmp_path / "model.ckpt.data-00000-of-00001").unlink()
    with refuses(DataError, "missing-file"):
        open_bundle(prefix)


def test_a_mutated_entry_under_a_right_checksum_never_gives_numbers_from_outside_the_file(tmp_path: Path) -> None:
    rng = random.Random(11)
    for _ in range(300):
        mutated = bytearray(SOUND)
        for _ in range(rng.randint(1, 3)):
            mutated[rng.randrange(len(mutated))] = rng.randrange(256)
        prefix = write_index(tmp_path, [HEADER, (b"w", bytes(mutated))])
        try:
            tensors = read_all(prefix)
        except DataError:
            continue
        # what is read is some of the 64 zeros, with the checksum that the entry has
        assert all(raw_bytes(tensor) == bytes(tensor.nbytes) for tensor in tensors.values())
        assert all(tensor.nbytes <= 64 for tensor in tensors.values())


def test_a_tensor_may_be_written_to_without_harm_to_the_file(tmp_path: Path) -> None:
    write_bundle(tmp_path / "model.ckpt", {"w": torch.ones(4)})
    open_bundle(tmp_path / "model.ckpt").read("w").zero_()
    assert torch.equal(open_bundle(tmp_path / "model.ckpt").read("w"), torch.ones(4))


def test_a_masked_checksum_differs_from_the_plain_one() -> None:
    plain = crc32c(b"123456789")
    assert masked_crc32c(b"123456789") == ((plain >> 15 | plain << 17) + 0xA282EAD8) % 2**32
