// HTML's character references in plain text: numbers, and the names of HTML 4.

const latin1 = "nbsp iexcl cent pound curren yen brvbar sect uml copy ordf laquo not shy reg macr deg plusmn sup2 sup3 acute micro para " +
  "middot cedil sup1 ordm raquo frac14 frac12 frac34 iquest Agrave Aacute Acirc Atilde Auml Aring AElig Ccedil Egrave Eacute Ecirc " +
  "Euml Igrave Iacute Icirc Iuml ETH Ntilde Ograve Oacute Ocirc Otilde Ouml times Oslash Ugrave Uacute Ucirc Uuml Yacute THORN szlig " +
  "agrave aacute acirc atilde auml aring aelig ccedil egrave eacute ecirc euml igrave iacute icirc iuml eth ntilde ograve oacute " +
  "ocirc otilde ouml divide oslash ugrave uacute ucirc uuml yacute thorn yuml"; // U+00A0 to U+00FF
const others = "quot\"amp&lt<gt>apos'OEligŒoeligœScaronŠscaronšYumlŸfnofƒcircˆtilde˜ensp\u2002emsp\u2003thinsp\u2009zwnj\u200czwj\u200dlrm\u200erlm\u200f" +
  "ndash–mdash—lsquo‘rsquo’sbquo‚ldquo“rdquo”bdquo„dagger†Dagger‡bull•hellip…permil‰prime′Prime″lsaquo‹rsaquo›oline‾frasl⁄euro€" +
  "imageℑweierp℘realℜtrade™alefsymℵlarr←uarr↑rarr→darr↓harr↔crarr↵lArr⇐uArr⇑rArr⇒dArr⇓hArr⇔forall∀part∂exist∃empty∅nabla∇isin∈" +
  "notin∉ni∋prod∏sum∑minus−lowast∗radic√prop∝infin∞ang∠and∧or∨cap∩cup∪int∫there4∴sim∼cong≅asymp≈ne≠equiv≡le≤ge≥sub⊂sup⊃nsub⊄" +
  "sube⊆supe⊇oplus⊕otimes⊗perp⊥sdot⋅lceil⌈rceil⌉lfloor⌊rfloor⌋lang⟨rang⟩loz◊spades♠clubs♣hearts♥diams♦" +
  "AlphaΑBetaΒGammaΓDeltaΔEpsilonΕZetaΖEtaΗThetaΘIotaΙKappaΚLambdaΛMuΜNuΝXiΞOmicronΟPiΠRhoΡSigmaΣTauΤUpsilonΥPhiΦChiΧPsiΨOmegaΩ" +
  "alphaαbetaβgammaγdeltaδepsilonεzetaζetaηthetaθiotaιkappaκlambdaλmuμnuνxiξomicronοpiπrhoρsigmafςsigmaσtauτupsilonυphiφchiχpsiψ" +
  "omegaωthetasymϑupsihϒpivϖ";

const named = new Map(latin1.split(" ").map((name, i) => [name, String.fromCharCode(160 + i)]));
for (const [, name, character] of others.matchAll(/([A-Za-z][A-Za-z0-9]*)([^A-Za-z0-9])/gu)) named.set(name, character);

const reference = /&(?:#(\d{1,7})|#[xX]([0-9a-fA-F]{1,6})|([A-Za-z][A-Za-z0-9]{1,30}));/y;

/** What a number stands for; a character that cannot be shown is U+FFFD. */
function numbered(code) {
  const barred = code === 0 || code > 0x10ffff || (code >= 0xd800 && code < 0xe000);
  return barred ? "\ufffd" : String.fromCodePoint(code);
}

/** The reference that begins at a place: [character, end], or null where there is none. */
export function entityAt(text, at) {
  reference.lastIndex = at;
  const found = reference.exec(text);
  if (found === null) return null;
  const [, decimal, hex, name] = found;
  const character = decimal !== undefined ? numbered(Number.parseInt(decimal, 10)) : hex !== undefined ? numbered(Number.parseInt(hex, 16)) : named.get(name);
  return character === undefined ? null : [character, reference.lastIndex];
}

export function decodeEntities(text) {
  return text.replace(/&[#A-Za-z0-9]{1,32};/g, (whole) => entityAt(whole, 0)?.[0] ?? whole);
}
