#!/usr/bin/env python3
"""Writes tests/golden/tokenizers/split_patterns.json: where regular expressions of tokenizers split texts.

The reference is Hugging Face's tokenizers (0.22.2: `pip install tokenizers==0.22.2`), which compiles
the expressions of a tokenizer.json with Oniguruma. Each entry has a list of expressions, applied one
after the other as `Split` with the behavior `Isolated`, and for each text the byte offsets of the
cuts inside it. Published lists come from the tokenizer.json of the named models; the others show one
construct each, or are random.

    split_patterns.py tests/golden/tokenizers/split_patterns.json
"""

import json
import random
import sys

from tokenizers import Regex, pre_tokenizers

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
UPPER, LOWER = r"\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}", r"\p{Ll}\p{Lm}\p{Lo}\p{M}"
START = r"[^\r\n\p{L}\p{N}]?"
SPACES = r"\s*[\r\n]+|\s+(?!\S)|\s+"
ASCII_PUNCTUATION = r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~]"
DEEPSEEK3 = (ASCII_PUNCTUATION + r"[A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|"
             + SPACES)
# Characters are given by number, since editors change some of them into equivalent ones.
DEEPSEEK_LETTERS = "".join(
    "-".join(chr(int(end, 16)) for end in ends.split("-")) for ends in (
        "41-5a 61-7a b5 c0-d6 d8-f6 f8-1ba 1bc-1bf 1c4-293 295-2af 370-373 376 377 37b-37d 37f 386 388-38a "
        "38c 38e-3a1 3a3-3f5 3f7-481 48a-52f 531-556 10a0-10c5 13a0-13f5 13f8-13fd 1c90-1cba 1cbd-1cbf "
        "1d00-1d2b 1d6b-1d77 1d79-1d9a 1e00-1f15 1f18-1f1d 1f20-1f45 1f48-1f4d 1f50-1f57 1f59 1f5b 1f5d "
        "1f5f-1f7d 1f80-1fb4 1fb6-1fbc 1fbe 1fc2-1fc4 1fc6-1fcc 1fd0-1fd3 1fd6-1fdb 1fe0-1fec 1ff2-1ff4 "
        "1ff6-1ffc 2102 2107 210a-2113 2115 2119-211d 2124 2126 2128 212a-212d 212f-2134 2139 213c-213f "
        "2145-2149 214e 2183 2184 2c00-2c7b 2c7e-2ce4 2ceb-2cee 2cf2 2cf3 a640-a66d a680-a69b a722-a76f "
        "a771-a787 a78b-a78e ab70-abbf fb00-fb06 fb13-fb17 ff21-ff3a ff41-ff5a 10400-1044f 104b0-104d3 "
        "104d8-104fb 10c80-10cb2 10cc0-10cf2 118a0-118df 1e900-1e943").split())


def llama_like(digits, symbols=r" ?[^\s\p{L}\p{N}]+[\r\n]*", words=r"\p{L}+", start=START, spaces=SPACES):
    return "|".join([CONTRACTIONS, start + words, digits, symbols, spaces])


def gpt4o_like(digits, symbols, ending="", upper=f"[{UPPER}]", lower=f"[{LOWER}]"):
    ending = ending and ending + "?"
    return "|".join([START + upper + "*" + lower + "+" + ending, START + upper + "+" + lower + "*" + ending, digits, symbols, SPACES])


SLASHES = r" ?[^\s\p{L}\p{N}]+[\r\n/]*"
NO_HAN = r"&&[^\p{Han}]]"

PUBLISHED = {
    "gpt2": [GPT2],
    "starcoder": [r"\p{N}", GPT2],
    "llama3": [llama_like(r"\p{N}{1,3}")],
    "qwen2": [llama_like(r"\p{N}")],
    "qwen3.5": [llama_like(r"\p{N}", r" ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*", r"[\p{L}\p{M}]+")],
    "cl100k": [r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|"
               r"\s*[\r\n]|\s+(?!\S)|\s"],
    "bailingmoe": [r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|"
                   r"\s+(?!\S)|\s+"],
    "gpt-4o": [gpt4o_like(r"\p{N}{1,3}", SLASHES, CONTRACTIONS)],
    "tekken": [gpt4o_like(r"\p{N}", SLASHES)],
    "kimi-k2": [r"[\p{Han}]+|" + gpt4o_like(r"\p{N}{1,3}", r" ?[^\s\p{L}\p{N}]+[\r\n]*", CONTRACTIONS,
                                           f"[{UPPER}{NO_HAN}", f"[{LOWER}{NO_HAN}")],
    "deepseek-llm": [r"[\r\n]", rf"\s?[{DEEPSEEK_LETTERS}]+", r"\s?[!-/:-~！-／：-～‘-‟　-。]+", r"\s+$",
                     r"[一-龥ࠀ-一가-퟿]+", r"\p{N}+"],
    "deepseek-coder": [r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", r"[一-龥ࠀ-一가-퟿]+", r"\p{N}"],
    "deepseek-v3": [r"\p{N}{1,3}", r"[一-龥぀-ゟ゠-ヿ]+", DEEPSEEK3],
    "falcon": [r"[\p{P}\$\+<=>\^~\|`]+", GPT2, r"[0-9][0-9][0-9]"],
    "default": [r"[\p{P}\$\+<=>\^~\|]+", GPT2, r"\p{N}+", r"[0-9][0-9][0-9]"],
    "bloom": [r" ?[^(\s|[.,!?…。，、।۔،])]+"],
    "viking": [r" ?[^(\s|[.,!?…。，、।۔،])]+", r"\p{N}"],
    "chameleon": [r"<sentinel:[0-9]+>", r"(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z", r"([\t\n]|    |  )", r"\p{N}",
                  r"[\p{P}!-/:-@\[-`{-~]", GPT2],
    "seed-coder": [llama_like(r"\p{N}{1}", r" ?[^\s\p{L}\p{N}\r\n]+")],
    "jais-2": ["|".join([CONTRACTIONS, START + r"\p{L}+", r"\p{N}{1,3}", r" ?[^\s\p{L}\p{N}]+[\r\n]*", r"\s*[\r\n]+"]
                        + [rf"\s{{{n}}}(?!\S)" for n in (512, 256, 128, 64, 32, 16, 8, 4)]
                        + [r"\s{1,2}(?!\S)", r"\s{1}"])],
    "exaone-moe": [llama_like(r"\p{N}", r" ?[^\s\p{L}\p{N}]+[\r\n/]?", r"(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+",
                              spaces=r"\s*[\r\n]|\s+(?!\S)|\s+")],
    "minicpm5": [r"\p{N}{1,3}", llama_like(r"\p{N}+")],
    "laguna": [r"[^\n]+|[\n]+", llama_like(r"\p{N}")],
    "ufakzeka": [llama_like(r"\p{N}").split("|", 7)[-1]],
    "spark2.5": [r"\p{N}{1,3}", r"[一-龥぀-ゟ゠-ヿ]+",
                 DEEPSEEK3.replace(r"+[\r\n]*|\s*[\r\n]+", r"+|[\r\n]"), r"\p{N}"],
    "youtu": [r"[가-힣ㄱ-ㆎ]+|[！…“”‘’—：；，、-〿︰-﹏]+|[ㄅ-ㄯ]+|[一-龥぀-ゟ゠-ヿ]+",
              gpt4o_like(r"\p{N}", SLASHES, CONTRACTIONS)],
    "superbpe": [r"\p{N}+", r"(?=(\d{3})+(?!\d))"],
    "tiny-aya": [r"\d{1,3}(?=(?:\d{3})*\b)", gpt4o_like(r"\p{N}{1,3}", SLASHES, CONTRACTIONS)],
    "afmoe": [r"\p{N}{1,3}(?=(?:\p{N}{3})*(?!\p{N}))",
              "[一-鿿㐀-䶿\\uf900-\\ufaff぀-ゟ゠-ヿ･-ﾟ⼀-⿟เ-๿຀-໿ក-៿က-႟ꩠ-ꩿꧠ-꧿가-힯ᄀ-ᇿ]+", DEEPSEEK3],
}

CONSTRUCTS = [
    r"[\p{L}&&[^\p{Han}]]+", r"[a-z&&[^aeiou]]+", r"[^a-z&&[^aeiou]]+", r"[a[bc][^\x00-\x7f]]+", r"\h+", r"\H+",
    r"a{,2}", r"a{,}", r"[[:punct:]]+", r"\p{Punct}+", r"[[:^alpha:]]+", r"[[:word:]]+", r"\w+", r"[\w]+", r"\W+",
    r"[\W]+", r"[^\S\r\n]+", r"\d+", r"\s+", r"[\s]+", r"[\u4e00-\u9fff]+", r"\u4e00", r"[\x{4e00}-\x{9fff}]+", r"\b", r"\B",
    "^", "$", r"\A", r"\Z", r"\z", ".", "(?m:.)", "(?m).+", r"\R", r"\N+", r"\O+", r"\p{^L}+", r"\P{^L}+", r"\pL", r"a{2}+",
    r"\p{N}{1,3}+", r"a{3,1}b", r"a{2}?", r"a{1,2}?b", r"a?+", "a*+", "a++", "(?>a|ab)c?", r"a\Kb", "(?i:'s|'t|'ll)",
    "(?i:[sk])+", "(?i)k", "a(?i)b|c", "(?x: a b # c\n )+", "(?#no)a(?#no)*", r"(?<word>\w)+", r"(?<=a)b|(?<!a)c", "(?=a)", "(?!a)",
    r"\v", r"[\b]", r"\x41\x{42}\011", "[]a]+", "[^]a]+", "[a-]+", "[-a]+", "[a-c-e]+", "[a&&a-]+", r"\p{Uppercase Letter}", r"\p{han}+",
    r"\p{Hiragana}+|\p{Katakana}+", r"\p{Letter}", r"\p{Alpha}+", r"[\p{Graph}]+", r"[[:print:]]+", r"[[:blank:]]", r"\p{^Word}+",
    r"\p{Lower}+", r"[^\p{Upper}\s]+", "x*", "a|", "(?:a|b)?", "{a", "a{x}", "a]", r"\-\_\/", r"[\d\-x]+",
]
REFUSED_BY_TWILL = [r"(a)\1", r"\X", r"\G", "(?~ab)", "(?:a*)*", "(?i:ss)", r"(?i)\u00e9", r"(?i:[\p{L}])", "[--a]",
                    r"(?<a>a)\g<a>", r"\x{41 42}"]
REFUSED_BY_BOTH = ["a)", "(a", "[a", "a|*", "*a", r"[b-a]", r"\p{Foo}", "(?s)a", "^*", r"\p{L&}", "[[:foo:]]", r"\u{4e00}"]

CHARS = list("abcsSkKtfi19 '_-!$.,\n\r\t") + list("é一二ßſ\u212a²\u0301\u00a0\u200dⒶЖжǅあア١\u180e😀、\u2028\u0085")
TEXTS = [
    "I'm  here, WE'LL go:\n\n\t 12345 Straße café 你好，世界 \r\n don't!!\u2003 x",
    "aaab bca 'S 'ſ \u212ak \x08\x0b \\-_/ {a}] a-b pL AB 1234567 12²3",
    "Der Preis: $1,234.50 (ca. 1\u00a0234 €)… «ja» ½ Ⓐ ǅungla ЖЗ жз हिन्दी नमस्ते 한국어 ひらがなカタカナ\u3000",
    "<sentinel:12> IMGIMGABZ    x\n\n\n  y\r\rz   \n w' 're'RE\u2028\u0085end ",
    "e\u0301\u0323a\u200db 😀👍🏽 \u180e١٢٣ abc123abc 999999abc 000 1 22 333 4444 55555",
]


class Generator:
    """Random expressions of Oniguruma's syntax."""

    def __init__(self, seed):
        self.r = random.Random(seed)

    def text(self):
        return "".join(self.r.choice(CHARS) for _ in range(self.r.randint(4, 16)))

    def type(self):
        return self.r.choice(r"\w \W \d \D \s \S \h \H \p{L} \p{^L} \P{N} \p{Lu} \p{Ll} \p{M} \p{Han} \P{^Han} \p{Latin} "
                             r"\p{Alpha} \p{Word} \p{Punct} \p{Upper} \p{Alnum} \p{Graph} \p{P} \p{S} \p{^Word}".split())

    def item(self, depth):
        k = self.r.random()
        if k < 0.35:
            return self.r.choice(r"a b s k 1 _ é 一 \n \- \] ! $ \u0301 ² & \x{2028} \101".split() + [" "])
        if k < 0.5:
            return self.r.choice(r"a-z A-Z 0-9 \u4e00-\u9fff \x00-\x1f !-/ a-\x{ff}".split())
        if k < 0.8 or depth > 1:
            return self.type()
        if k < 0.9:
            return "[:" + self.r.choice("alnum alpha blank digit lower punct space upper word".split()) + ":]"
        return self.klass(depth + 1)

    def klass(self, depth=0):
        some = lambda: "".join(self.item(depth) for _ in range(self.r.randint(1, 3)))
        both = "&&" + some() if self.r.random() < 0.3 else ""
        return "[" + self.r.choice(["", "^"]) + some() + both + "]"

    def atom(self, depth):
        k = self.r.random()
        if k < 0.25:
            return self.r.choice(r"a b s k ' 1 _ \. \n \u4e00 é ² \v \pL".split() + [" "])
        if k < 0.45:
            return self.type()
        if k < 0.7:
            return self.klass()
        if k < 0.76 or depth > 1:
            return self.r.choice([".", "^", "$", r"\b", r"\B", r"\Z", r"\R", r"\N"])
        return self.r.choice(["(", "(?:", "(?m:", "(?=", "(?!", "(?<=", "(?>", "(?-i:"]) + self.any(depth + 1) + ")"

    def any(self, depth=0):
        q = ["", "", "", "?", "*", "+", "*?", "+?", "++", "{2}", "{1,3}", "{,2}", "{1,2}?", "{1,2}+", "{2}+"]
        return "|".join("".join(self.atom(depth) + self.r.choice(q) for _ in range(self.r.randint(1, 3)))
                        for _ in range(self.r.choice([1, 1, 2])))


def cuts(expressions, text):
    splits = [pre_tokenizers.Split(Regex(e), "isolated", False) for e in expressions]
    at, found = 0, []
    for word, _ in pre_tokenizers.Sequence(splits).pre_tokenize_str(text):
        at += len(word.encode())
        found.append(at)
    return found[:-1]


def compiles(expression):
    try:
        Regex(expression)
        return True
    except Exception:  # the library raises a plain Exception
        return False


def entry(expressions, texts=TEXTS):
    return {"expressions": expressions, "cuts": [cuts(expressions, t) for t in texts]}


def main():
    random_ones, g = [], Generator(5)
    while len(random_ones) < 150:
        expression, texts = g.any(), [g.text() for _ in range(3)]
        if compiles(expression):
            random_ones.append(entry([expression], texts) | {"texts": texts})
    for expressions, known in [(REFUSED_BY_BOTH, False), (REFUSED_BY_TWILL, True)]:
        assert all(compiles(e) == known for e in expressions), [e for e in expressions if compiles(e) != known]
    golden = {
        "texts": TEXTS,
        "published": [{"name": n} | entry(e) for n, e in PUBLISHED.items()],
        "constructs": [entry([e]) for e in CONSTRUCTS],
        "random": random_ones,
        "refused": REFUSED_BY_TWILL + REFUSED_BY_BOTH,
    }
    with open(sys.argv[1], "w", encoding="utf-8") as out:
        out.write(json.dumps(golden, ensure_ascii=False, separators=(",", ":")).replace('{"expressions"', '\n{"expressions"').replace('{"name"', '\n{"name"') + "\n")


main()
