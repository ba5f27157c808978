"""Makes mushrooms.npz of the file `mushrooms` of LIBSVM: 100 clients by the order of the file.

`python mushrooms.py mushrooms` writes it next to this script (numpy).
"""

import sys
from pathlib import Path

import numpy as np

lines = [line.split() for line in Path(sys.argv[1]).read_text().splitlines()]
records = np.zeros((len(lines), 112))
for record, (_, *entries) in zip(records, lines, strict=True):
    for entry in entries:
        index, value = entry.split(":")
        record[int(index) - 1] = float(value)
labels = np.array([float(label) for label, *_ in lines])
sizes = [len(part) for part in np.array_split(labels, 100)]
clients = np.repeat(np.arange(100), sizes)
np.savez_compressed(Path(__file__).parent / "mushrooms.npz", x=records, y=labels, client=clients)
