"""How the two segments of a pair are related, and the label each sentence task gives to it."""

import numpy as np

IN_ORDER, SWAPPED, RANDOM = 0, 1, 2

TASKS = ("none", "sop", "nsp", "three-way")
NONE, SOP, NSP, THREE_WAY = range(4)

SINGLE_SENTENCE = ("merge_next", "drop", "random_doc")
MERGE_NEXT, DROP, RANDOM_DOC = range(3)

# Task -> the label of IN_ORDER, SWAPPED, RANDOM. Official ALBERT gives a random document label 1 in SOP too; the
# three-way task is StructBERT's (Wang et al. 2019).
TASK_LABELS = np.array([[-1, -1, -1], [0, 1, 1], [0, 1, 1], [0, 1, 2]], np.int8)
