// What the commands of TeX's mathematics stand for.

/** "name character name character ..." as a Map. */
const table = (text) => {
  const words = text.split(" ");
  return new Map(words.filter((_, i) => i % 2 === 0).map((name, i) => [name, words[2 * i + 1]]));
};

/** Letters: they stand for themselves, as variables do. */
export const letters = table("alpha α beta β gamma γ delta δ epsilon ϵ varepsilon ε zeta ζ eta η theta θ vartheta ϑ iota ι kappa κ varkappa ϰ " +
  "lambda λ mu μ nu ν xi ξ omicron ο pi π varpi ϖ rho ρ varrho ϱ sigma σ varsigma ς tau τ upsilon υ phi ϕ varphi φ chi χ psi ψ omega ω " +
  "Gamma Γ Delta Δ Theta Θ Lambda Λ Xi Ξ Pi Π Sigma Σ Upsilon Υ Phi Φ Psi Ψ Omega Ω infty ∞ hbar ℏ hslash ℏ ell ℓ imath ı jmath ȷ wp ℘ " +
  "Re ℜ Im ℑ aleph ℵ beth ℶ gimel ℷ partial ∂ nabla ∇ emptyset ∅ varnothing ∅ top ⊤ bot ⊥ angle ∠ triangle △ square □ Box □ " +
  "blacksquare ■ diamond ⋄ Diamond ◇ star ⋆ bigstar ★ clubsuit ♣ diamondsuit ♢ heartsuit ♡ spadesuit ♠ sharp ♯ flat ♭ natural ♮ degree ° " +
  "dag † ddag ‡ S § P ¶ pounds £ copyright © checkmark ✓ complement ∁ mho ℧ Bbbk 𝕜 digamma ϝ eth ð");

/** Operators, relations, arrows. */
export const symbols = table("pm ± mp ∓ times × div ÷ cdot ⋅ cdotp ⋅ ast ∗ circ ∘ bullet ∙ oplus ⊕ ominus ⊖ otimes ⊗ oslash ⊘ odot ⊙ " +
  "wedge ∧ land ∧ vee ∨ lor ∨ cap ∩ cup ∪ sqcap ⊓ sqcup ⊔ uplus ⊎ setminus ∖ smallsetminus ∖ wr ≀ amalg ⨿ ltimes ⋉ rtimes ⋊ bowtie ⋈ " +
  "neg ¬ lnot ¬ forall ∀ exists ∃ nexists ∄ leq ≤ le ≤ leqslant ⩽ geq ≥ ge ≥ geqslant ⩾ ll ≪ gg ≫ neq ≠ ne ≠ equiv ≡ sim ∼ simeq ≃ " +
  "approx ≈ cong ≅ propto ∝ varpropto ∝ asymp ≍ doteq ≐ coloneqq ≔ triangleq ≜ prec ≺ succ ≻ preceq ⪯ succeq ⪰ lesssim ≲ gtrsim ≳ " +
  "in ∈ notin ∉ ni ∋ subset ⊂ supset ⊃ subseteq ⊆ supseteq ⊇ subsetneq ⊊ supsetneq ⊋ sqsubseteq ⊑ sqsupseteq ⊒ nsubseteq ⊈ " +
  "perp ⊥ parallel ∥ nparallel ∦ mid ∣ nmid ∤ vdash ⊢ dashv ⊣ models ⊨ vDash ⊨ smile ⌣ frown ⌢ therefore ∴ because ∵ lt < gt > " +
  "to → rightarrow → gets ← leftarrow ← leftrightarrow ↔ Rightarrow ⇒ Leftarrow ⇐ Leftrightarrow ⇔ implies ⟹ impliedby ⟸ iff ⟺ " +
  "longrightarrow ⟶ longleftarrow ⟵ longleftrightarrow ⟷ Longrightarrow ⟹ Longleftarrow ⟸ Longleftrightarrow ⟺ mapsto ↦ longmapsto ⟼ " +
  "uparrow ↑ downarrow ↓ updownarrow ↕ Uparrow ⇑ Downarrow ⇓ nearrow ↗ searrow ↘ swarrow ↙ nwarrow ↖ hookrightarrow ↪ hookleftarrow ↩ " +
  "rightharpoonup ⇀ rightharpoondown ⇁ leftharpoonup ↼ rightleftharpoons ⇌ leadsto ⇝ rightsquigarrow ⇝ twoheadrightarrow ↠ " +
  "ldots … dots … dotsc … dotsb ⋯ dotsm ⋯ cdots ⋯ dotsi ⋯ vdots ⋮ ddots ⋱ colon : prime ′ backslash ∖ surd √ And &");

/** With limits above and below, and integrals, whose limits stand beside. */
export const largeOperators = table("sum ∑ prod ∏ coprod ∐ bigcup ⋃ bigcap ⋂ bigoplus ⨁ bigotimes ⨂ bigodot ⨀ bigvee ⋁ bigwedge ⋀ bigsqcup ⨆ biguplus ⨄");
export const integrals = table("int ∫ iint ∬ iiint ∭ oint ∮ oiint ∯ smallint ∫");

export const functions = new Set(("arccos arcsin arctan arg cos cosh cot coth csc deg dim exp hom ker lg ln log sec sin sinh tan tanh " +
  "sgn tr").split(" "));
export const limits = new Map(["det", "gcd", "inf", "lim", "liminf", "limsup", "max", "min", "Pr", "sup", "argmax", "argmin"].map((name) =>
  [name, name === "liminf" ? "lim inf" : name === "limsup" ? "lim sup" : name]));

export const fences = new Map([...["(", ")", "[", "]", "|", "/"].map((one) => [one, one]), ["<", "⟨"], [">", "⟩"], [".", ""], ["\\{", "{"], ["\\}", "}"], ["\\|", "‖"],
  ...[...table("lbrace { rbrace } lbrack [ rbrack ] langle ⟨ rangle ⟩ lfloor ⌊ rfloor ⌋ lceil ⌈ rceil ⌉ vert | lvert | rvert | Vert ‖ lVert ‖ " +
    "rVert ‖ uparrow ↑ downarrow ↓ Uparrow ⇑ Downarrow ⇓ backslash \\ lgroup ⟮ rgroup ⟯")].map(([name, one]) => [`\\${name}`, one])]);

/** Marks above (and below) a symbol; those that grow with it. */
export const accents = table("hat ^ widehat ^ bar ‾ overline ‾ vec → overrightarrow → overleftarrow ← overleftrightarrow ↔ tilde ~ widetilde ~ " +
  "dot ˙ ddot ¨ dddot ⃛ acute ´ grave ` breve ˘ check ˇ mathring ˚ overbrace ⏞ underline _ underbrace ⏟ underrightarrow →");
export const growing = new Set("widehat overline overrightarrow overleftarrow overleftrightarrow widetilde overbrace underline underbrace underrightarrow".split(" "));

export const spaces = new Map([[",", "0.1667em"], [":", "0.2222em"], [">", "0.2222em"], [";", "0.2778em"], ["!", "-0.1667em"], [" ", "0.25em"], ["\n", "0.25em"],
  ["thinspace", "0.1667em"], ["enspace", "0.5em"], ["quad", "1em"], ["qquad", "2em"], ["space", "0.25em"], ["nobreakspace", "0.25em"]]);

/** Matrices and their fences. */
export const matrices = new Map([["matrix", ["", ""]], ["smallmatrix", ["", ""]], ["pmatrix", ["(", ")"]], ["bmatrix", ["[", "]"]], ["Bmatrix", ["{", "}"]],
  ["vmatrix", ["|", "|"]], ["Vmatrix", ["‖", "‖"]]]);

// Where the letters of each style begin: capitals, small letters, digits, Greek capitals, small Greek letters.
const starts = {
  bf: [0x1d400, 0x1d41a, 0x1d7ce, 0x1d6a8, 0x1d6c2], bfit: [0x1d468, 0x1d482, 0x1d7ce, 0x1d71c, 0x1d736], cal: [0x1d49c, 0x1d4b6], frak: [0x1d504, 0x1d51e],
  bb: [0x1d538, 0x1d552, 0x1d7d8], sf: [0x1d5a0, 0x1d5ba, 0x1d7e2], tt: [0x1d670, 0x1d68a, 0x1d7f6],
};
const holes = {
  cal: "B ℬ E ℰ F ℱ H ℋ I ℐ L ℒ M ℳ R ℛ e ℯ g ℊ o ℴ", frak: "C ℭ H ℌ I ℑ R ℜ Z ℨ", bb: "C ℂ H ℍ N ℕ P ℙ Q ℚ R ℝ Z ℤ",
};
export const styles = { mathbf: "bf", textbf: "bf", boldsymbol: "bfit", bm: "bfit", mathcal: "cal", mathscr: "cal", mathfrak: "frak", mathbb: "bb", mathsf: "sf", mathtt: "tt" };
const ranges = ["AZ", "az", "09", "ΑΩ", "αω"].map(([first, last]) => [first.codePointAt(0), last.codePointAt(0)]);

/** A character in a style; itself where the style has none. */
export function styledCharacter(character, style) {
  const hole = table(holes[style] ?? "").get(character);
  if (hole !== undefined) return hole;
  const code = character.codePointAt(0);
  const at = ranges.findIndex(([first, last]) => code >= first && code <= last);
  const start = starts[style][at];
  return start === undefined || character.length > 1 ? character : String.fromCodePoint(start + code - ranges[at][0]);
}
