"""Reads the banks of a folder with each library, and writes one of them anew with each.

    banks.py READ_FOLDER WRITE_FOLDER

Prints a line of JSON for each library and bank: schema, number of rows, and the rows, of large banks the first and
last. The test compares; nothing is judged here but the schema that the libraries themselves state."""
import base64
import json
import os
import sys
from pathlib import Path

read_from, write_to = Path(sys.argv[1]), Path(sys.argv[2])
os.environ["HF_DATASETS_OFFLINE"] = os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["HF_HOME"] = str(write_to / "cache")

import datasets
import polars
import pyarrow
import pyarrow.parquet

datasets.disable_progress_bars()


def say(library, path, schema, rows):
    shown = rows if len(rows) <= 1000 else [rows[0], rows[-1]]
    print(json.dumps({"library": library, "bank": path.name, "schema": schema, "count": len(rows), "rows": shown}))


for path in sorted(read_from.glob("*.parquet")):
    file = pyarrow.parquet.ParquetFile(path)
    table = file.read()
    table.validate(full=True)
    say("pyarrow", path, [[f.name, str(f.type), f.nullable] for f in table.schema], table.to_pylist())
    # What is kept beside the file's own schema says the same, and is nothing but that.
    (key, value), = file.metadata.metadata.items()
    assert key == b"ARROW:schema", key
    kept = pyarrow.ipc.read_schema(pyarrow.py_buffer(base64.b64decode(value)))
    assert kept.equals(table.schema, check_metadata=True), kept
    facts = file.metadata
    assert facts.created_by == "gsj-tables version 1", facts.created_by
    column = facts.row_group(0).column(0)
    assert (column.compression, column.has_dictionary_page or not facts.num_rows) == ("SNAPPY", True)

    frame = polars.read_parquet(path)
    say("polars", path, [[name, str(kind), True] for name, kind in frame.schema.items()], frame.to_dicts())
    counted = polars.scan_parquet(path).filter(polars.col("split") == "eval").collect()
    assert len(counted) == sum(row["split"] == "eval" for row in table.to_pylist())

    if not len(table):
        continue  # this library makes nothing of any table without rows, its own included
    data = datasets.Dataset.from_parquet(str(path), cache_dir=str(write_to / "cache" / path.stem))
    say("datasets", path, [[name, kind.dtype, True] for name, kind in data.features.items()], data.to_list())

# The tokens of traces, a table of another kind.
tokens = pyarrow.parquet.read_table(read_from / "tokens" / "tokens.parquet")
tokens.validate(full=True)
path = read_from / "tokens" / "tokens.parquet"
say("pyarrow", path, [[f.name, str(f.type), f.nullable] for f in tokens.schema], tokens.to_pylist())
assert polars.read_parquet(path).to_dicts() == tokens.to_pylist()
assert datasets.Dataset.from_parquet(str(path), cache_dir=str(write_to / "cache" / "t")).to_list() == tokens.to_pylist()

table = pyarrow.parquet.read_table(read_from / "some.parquet")
write = pyarrow.parquet.write_table
write(table, write_to / "pyarrow.parquet")
write(table, write_to / "pyarrow-v2.parquet", data_page_version="2.0")
write(table, write_to / "pyarrow-plain.parquet", use_dictionary=False, compression="none", data_page_size=200)
write(table, write_to / "pyarrow-groups.parquet", row_group_size=7, data_page_version="2.0", data_page_size=50)
write(table, write_to / "pyarrow-old.parquet", version="1.0", store_schema=False)
large = pyarrow.schema([(f.name, pyarrow.large_string() if f.type == "string" else f.type) for f in table.schema])
write(table.cast(large), write_to / "pyarrow-large.parquet")
table.to_pandas().to_parquet(write_to / "pandas.parquet")
frame = polars.from_arrow(table)
frame.write_parquet(write_to / "polars.parquet", compression="snappy")
frame.write_parquet(write_to / "polars-none.parquet", compression="uncompressed", row_group_size=5)
datasets.Dataset(table).to_parquet(str(write_to / "datasets.parquet"))

odd = write_to / "odd"
odd.mkdir()
write(table, odd / "compressed by zstd.parquet", compression="zstd")
write(table, odd / "encoded as DELTA_LENGTH_BYTE_ARRAY.parquet", use_dictionary=False,
      column_encoding={"prompt_text": "DELTA_LENGTH_BYTE_ARRAY"})
write(table.drop_columns(["split"]), odd / "column split is missing.parquet")
write(table.append_column("score", table["timestep"]), odd / "column `score` does not belong there.parquet")
narrow = table.schema.set(1, pyarrow.field("timestep", pyarrow.int32()))
write(table.cast(narrow), odd / "column timestep is int32, not int64.parquet")
listed = pyarrow.array([["train"]] * len(table))
write(table.set_column(3, "split", listed), odd / "column split is a list or a struct, not string.parquet")
binary = table.schema.set(5, pyarrow.field("prompt_text", pyarrow.binary()))
write(table.cast(binary), odd / "column prompt_text is binary, not string.parquet")
nulls = pyarrow.array([None] * len(table), pyarrow.string())
write(table.set_column(0, "case_id", nulls), odd / "row 0: case_id is null.parquet")
words = table["split"].to_pylist()
words[-1] = "test"
write(table.set_column(3, "split", pyarrow.array(words)), odd / "`test` is neither `train` nor `eval`.parquet")
