#include "models/text/grammar/schema/formats.hpp"

#include <map>

namespace twill::models::grammar {
namespace {

/// Returns the pattern of a host name, which has at most 253 characters. The pattern allows up to
/// three labels of any valid length, or up to ten labels of at most 24 characters, because an
/// automaton that counts the characters of the whole name as well as of each label would be too
/// large.
std::string hostname_pattern() {
  const auto labels = [](int inner, int more) {
    const std::string label =
        "[A-Za-z0-9](?:[A-Za-z0-9-]{0," + std::to_string(inner) + "}[A-Za-z0-9])?";
    return label + "(?:\\." + label + "){0," + std::to_string(more) + "}";
  };
  return "^(?:" + labels(61, 2) + "|" + labels(22, 9) + ")$";
}

/// Returns the pattern for the format `regex`, whose values are regular expressions themselves. It
/// accepts only syntax that ECMA-262 and Python read alike: no lookaround, no back-references, and
/// groups nested at most two deep.
std::string regex_pattern() {
  const std::string escape = "\\\\[dDwWsSnrtfv.^$|?*+()\\[\\]{}/\\\\]";
  const std::string in_class =
      "\\[\\^?(?:a-z|A-Z|0-9|[A-Za-z0-9_ .,:;!@#%/=<>+*?$]|" + escape + ")+\\]";
  const std::string count = "(?:[*+?]|\\{[0-9]{1,3},?\\}|\\{[01],[1-9][0-9]{0,2}\\})\\??";
  std::string atom = "[^\\\\^$.|?*+()\\[\\]{}\\r\\n\\u2028\\u2029]|" + escape + "|\\.|" + in_class;
  std::string all;
  for (int depth = 0; depth < 3; ++depth) {
    const std::string one = "(?:(?:" + atom + ")(?:" + count + ")?|[\\^$])*";
    all = one + "(?:\\|" + one + ")*";
    atom += "|\\((?:\\?:)?" + all + "\\)";
  }
  return "^" + all + "$";
}

std::map<std::string, std::string> make_patterns() {
  // Years begin with year 1, as the dates of Python, pydantic and SQL do.
  const std::string year = "(?:[1-9][0-9]{3}|0[1-9][0-9]{2}|00[1-9][0-9]|000[1-9])";
  const std::string leap =
      "(?:[0-9][0-9](?:0[48]|[2468][048]|[13579][26])|(?:0[48]|[2468][048]|[13579][26])00)";
  const std::string date = "(?:" + year +
                           "-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])"
                           "|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))|" +
                           leap + "-02-29)";
  const std::string time = "(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\\.[0-9]+)?"
                           "(?:[Zz]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])";
  const std::string byte = "(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])";
  const std::string ipv4 = byte + "(?:\\." + byte + "){3}";
  const std::string h16 = "[0-9a-fA-F]{1,4}";
  const std::string last32 = "(?:" + h16 + ":" + h16 + "|" + ipv4 + ")";
  std::string ipv6 = "(?:(?:" + h16 + ":){6}" + last32;
  ipv6 += "|::(?:" + h16 + ":){5}" + last32;
  for (int before = 0; before <= 4; ++before)
    ipv6 += "|(?:(?:" + h16 + ":){0," + std::to_string(before) + "}" + h16 + ")?::(?:" + h16 +
            ":){" + std::to_string(4 - before) + "}" + last32;
  ipv6 += "|(?:(?:" + h16 + ":){0,5}" + h16 + ")?::" + h16 + "|(?:(?:" + h16 + ":){0,6}" + h16 +
          ")?::)";
  const std::string label = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?";
  const std::string host = label + "(?:\\." + label + ")*";
  const std::string atext = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+";

  const auto uri = [&](const std::string& beyond_ascii, bool reference) {
    const std::string plain = "[A-Za-z0-9._~!$&'()*+,;=:@" + beyond_ascii + "-]";
    const std::string pchar = "(?:" + plain + "|%[0-9A-Fa-f]{2})";
    const std::string authority = "(?:(?:[A-Za-z0-9._~!$&'()*+,;=:@" + beyond_ascii +
                                  "-]|%[0-9A-Fa-f]{2})*|(?:[A-Za-z0-9._~!$&'()*+,;=:%-]*@)?\\[" +
                                  ipv6 +
                                  "\\]"
                                  "(?::[0-9]*)?)";
    const std::string path = "(?:" + pchar + "|/)*";
    const std::string tail = "(?:\\?(?:" + pchar + "|[/?])*)?(?:#(?:" + pchar + "|[/?])*)?";
    const std::string scheme = "[A-Za-z][A-Za-z0-9+.-]*:";
    // What follows the scheme is // with an authority and a path, or a path alone. A path alone
    // must not begin with //, because // begins an authority.
    const std::string hier = "(?://" + authority + "(?:/" + path + ")?|/(?:" + pchar + path +
                             ")?|" + pchar + path + ")?";
    if (!reference) return "^" + scheme + hier + tail + "$";
    const std::string no_colon =
        "(?:[A-Za-z0-9._~!$&'()*+,;=@" + beyond_ascii + "-]|%[0-9A-Fa-f]{2})+";
    return "^(?:" + scheme + hier + "|//" + authority + "(?:/" + path + ")?|/(?:" + pchar + path +
           ")?|" + no_colon + "(?:/" + path + ")?)?" + tail + "$";
  };
  const std::string iri_characters = "\\u00a0-\\ud7ff\\uf900-\\ufdcf\\ufdf0-\\uffef";
  return {
      {"date", "^" + date + "$"},
      {"time", "^" + time + "$"},
      {"date-time", "^" + date + "[Tt]" + time + "$"},
      {"duration", "^P(?:[0-9]+W|(?:[0-9]+Y(?:[0-9]+M(?:[0-9]+D)?)?|[0-9]+M(?:[0-9]+D)?|[0-9]+D)"
                   "(?:T(?:[0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?|[0-9]+M(?:[0-9]+S)?|[0-9]+S))?"
                   "|T(?:[0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?|[0-9]+M(?:[0-9]+S)?|[0-9]+S))$"},
      {"email", "^" + atext + "(?:\\." + atext + ")*@" + host + "$"},
      {"hostname", hostname_pattern()},
      {"regex", regex_pattern()},
      {"ipv4", "^" + ipv4 + "$"},
      {"ip-address", "^" + ipv4 + "$"}, // the name in draft 3, which many schemas still use
      {"ipv6", "^" + ipv6 + "$"},
      {"uri", uri("", false)},
      {"uri-reference", uri("", true)},
      {"iri", uri(iri_characters, false)},
      {"iri-reference", uri(iri_characters, true)},
      {"uuid", "^[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}$"},
      {"json-pointer", "^(?:/(?:[^~/]|~[01])*)*$"},
      {"relative-json-pointer", "^(?:0|[1-9][0-9]*)(?:#|(?:/(?:[^~/]|~[01])*)*)$"},
  };
}

} // namespace

const std::string& format_pattern(const std::string& format) {
  static const std::map<std::string, std::string> patterns = make_patterns();
  static const std::string annotation;
  const auto found = patterns.find(format);
  return found == patterns.end() ? annotation : found->second;
}

} // namespace twill::models::grammar
