#!/usr/bin/env python3
"""Writes numbers as JSON texts, and as Python's json module writes them after reading them.

usage: json_numbers.py OUT.json
"""
import json
import random
import struct
import sys

TEXTS = """
0 -0 1 -1 1.0 -1.0 0.0 -0.0 -0e0 0.1000 1e5 1E5 1e+5 1e-5 100000.0 1.50 1e15 1e16 1e17 123456789012345678.0 1e22 1e23
9007199254740993 9007199254740993.0 9223372036854775807 9223372036854775808 -9223372036854775808 -9223372036854775809
18446744073709551615 18446744073709551616 -18446744073709551616 99999999999999999999 123456789012345678901234567890
-123456789012345678901234567890 1000000000000000000000000000000 1e30 1.0e30 -1e30 3.141592653589793238462643383279
0.1 0.2 0.30000000000000004 5e-324 4.9e-324 2.2250738585072014e-308 2.2250738585072011e-308 1.7976931348623157e308
1e-400 -1e-400 2.4703282292062327e-324 2.4703282292062328e-324 8.5 1.005 4.35 0.000001 0.00001 123e-7 1e-7
100000000000000016777215 100000000000000016777215.0 100000000000000016777216 9007199254740991e0 72057594037927945.0
2251799813685247.75 9.5367431640625e-07 1.7976931348623158e308 6.631236846766476e-316
""".split()


def main():
    rng = random.Random(7)
    texts = list(TEXTS)
    texts.append("1" + "0" * 308)
    for _ in range(60):
        texts.append(str(rng.choice((1, -1)) * rng.getrandbits(rng.choice((63, 64, 65, 100, 300)))))
    while len(texts) < 350:
        d = struct.unpack("<d", struct.pack("<Q", rng.getrandbits(64)))[0]
        if d == d and abs(d) != float("inf"):
            texts.append(rng.choice(("%.17g", "%.20e", "%r", "%.25g")) % d)
    pairs = [[text, json.dumps(json.loads(text))] for text in texts]
    with open(sys.argv[1], "w") as out:
        out.write("[\n" + ",\n".join(json.dumps(pair) for pair in pairs) + "\n]\n")


main()
