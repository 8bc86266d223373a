#include <cstddef>
#include <string>
#include <vector>

#include "models/text/jinja/arguments.hpp"
#include "models/text/jinja/methods.hpp"
#include "models/text/jinja/operators.hpp"
#include "models/text/jinja/print.hpp"
#include "models/text/jinja/str_format.hpp"
#include "models/text/jinja/text_ops.hpp"

namespace twill::models::jinja {
namespace {

const text& self_text(const val& self) {
  return *self.as_text();
}

val list_of(runtime& rt, std::vector<text> parts) {
  std::vector<val> items;
  items.reserve(parts.size());
  rt.charge_elements(parts.size());
  for (text& part : parts)
    items.push_back(rt.make_text(std::move(part)));
  return val(rt.make_list(list_data::list, std::move(items)));
}

template <sides Which>
val strip_method(runtime& rt, const val& self, const call_args& args) {
  const arguments a(rt, "strip", args, {"chars"});
  return rt.make_text(strip(self_text(self), a.string(0), Which));
}

template <bool FromRight>
val split_method(runtime& rt, const val& self, const call_args& args) {
  const arguments a(rt, "split", args, {"sep", "maxsplit"});
  return list_of(rt, split(rt, self_text(self), a.string(0), a.whole(1, -1), FromRight));
}

val splitlines_method(runtime& rt, const val& self, const call_args& args) {
  const arguments a(rt, "splitlines", args, {"keepends"});
  return list_of(rt, split_lines(self_text(self), a.flag(0, false)));
}

template <bool FromRight>
val partition_method(runtime& rt, const val& self, const call_args& args) {
  const arguments a(rt, "partition", args, {"sep"}, 1);
  const text& t = self_text(self);
  const text* sep = a.string(0);
  if (sep == nullptr || sep->bytes.empty()) rt.fail("empty separator");
  const std::size_t at = FromRight ? t.bytes.rfind(sep->bytes) : t.bytes.find(sep->bytes);
  std::vector<val> parts;
  if (at == std::string::npos) {
    parts = {rt.make_text(""), rt.make_text(""), rt.make_text("")};
    parts[FromRight ? 2 : 0] = self;
  } else {
    const std::size_t end = at + sep->bytes.size();
    parts = {rt.make_text(slice_bytes(t, 0, at)), rt.make_text(slice_bytes(t, at, end)),
             rt.make_text(slice_bytes(t, end, t.bytes.size()))};
  }
  return val(rt.make_list(list_data::tuple, std::move(parts)));
}

/// Returns s[start:end] as bytes of `t`; nothing if `start` is after the end.
std::optional<text> window(runtime& rt, const text& t, const arguments& a) {
  const auto bound = [&](std::size_t i) {
    return a.get(i) == nullptr || a.get(i)->is_none() ? std::nullopt : std::optional(a.whole(i, 0));
  };
  if (!bound(1) && !bound(2)) return t;
  if (bound(1).value_or(0) > static_cast<std::int64_t>(count_characters(t.bytes)))
    return std::nullopt;
  const val whole(std::make_shared<const text>(t));
  return *get_slice(rt, whole, bound(1), bound(2), std::nullopt).as_text();
}

template <bool AtEnd>
val affix_method(runtime& rt, const val& self, const call_args& args) {
  const arguments a(rt, AtEnd ? "endswith" : "startswith", args, {"affix", "start", "end"}, 1);
  const auto in = window(rt, self_text(self), a);
  const auto matches = [&](const val& affix) {
    const text* t = affix.as_text();
    if (t == nullptr) rt.fail("startswith/endswith takes a string or a tuple of strings");
    if (!in) return false;
    return AtEnd ? in->bytes.ends_with(t->bytes) : in->bytes.starts_with(t->bytes);
  };
  const auto* tuple = a.get(0)->as_list();
  if (tuple == nullptr || tuple->kind != list_data::tuple) return val(matches(*a.get(0)));
  for (const val& affix : tuple->items)
    if (matches(affix)) return val(true);
  return val(false);
}

template <bool AtEnd>
val remove_affix_method(runtime& rt, const val& self, const call_args& args) {
  const arguments a(rt, AtEnd ? "removesuffix" : "removeprefix", args, {"affix"}, 1);
  const text* affix = a.string(0);
  if (affix == nullptr) rt.fail("an affix must be a string");
  const text& t = self_text(self);
  const std::size_t n = affix->bytes.size(), size = t.bytes.size();
  if (AtEnd && t.bytes.ends_with(affix->bytes)) return rt.make_text(slice_bytes(t, 0, size - n));
  if (!AtEnd && t.bytes.starts_with(affix->bytes)) return rt.make_text(slice_bytes(t, n, size));
  return self;
}

template <bool Upper>
val case_method(runtime& rt, const val& self, const call_args& args) {
  const arguments a(rt, Upper ? "upper" : "lower", args, {});
  return rt.make_text(with_case(self_text(self), Upper));
}

val capitalize_method(runtime& rt, const val& self, const call_args& args) {
  const arguments a(rt, "capitalize", args, {});
  return rt.make_text(capitalize(self_text(self)));
}

val title_method(runtime& rt, const val& self, const call_args& args) {
  const arguments a(rt, "title", args, {});
  return rt.make_text(title(self_text(self)));
}

val replace_method(runtime& rt, const val& self, const call_args& args) {
  const arguments a(rt, "replace", args, {"old", "new", "count"}, 2);
  const text *from = a.string(0), *to = a.string(1);
  if (from == nullptr || to == nullptr) rt.fail("replace() takes strings");
  return rt.make_text(replace(rt, self_text(self), *from, *to, a.whole(2, -1)));
}

template <bool FromRight, bool MustFind>
val find_text_position(runtime& rt, const val& self, const call_args& args) {
  const arguments a(rt, "find", args, {"sub", "start", "end"}, 1);
  const text* sub = a.string(0);
  if (sub == nullptr) rt.fail("find() takes a string");
  const text& t = self_text(self);
  const auto in = window(rt, t, a);
  const std::size_t at = !in         ? std::string::npos
                         : FromRight ? in->bytes.rfind(sub->bytes)
                                     : in->bytes.find(sub->bytes);
  if (at == std::string::npos) {
    if (MustFind) rt.fail("substring not found");
    return val(std::int64_t{-1});
  }
  std::int64_t start = a.get(1) && !a.get(1)->is_none() ? a.whole(1, 0) : 0;
  const auto n = static_cast<std::int64_t>(count_characters(t.bytes));
  if (start < 0) start = std::max<std::int64_t>(start + n, 0);
  return val(start + character_position(*in, at));
}

val count_text_method(runtime& rt, const val& self, const call_args& args) {
  const arguments a(rt, "count", args, {"sub", "start", "end"}, 1);
  const text* sub = a.string(0);
  if (sub == nullptr) rt.fail("count() takes a string");
  const auto in = window(rt, self_text(self), a);
  if (!in) return val(std::int64_t{0});
  if (sub->bytes.empty()) return val(character_position(*in, in->bytes.size()) + 1);
  std::int64_t n = 0;
  for (std::size_t at = 0; (at = in->bytes.find(sub->bytes, at)) != std::string::npos;
       at += sub->bytes.size())
    ++n;
  return val(n);
}

val join_method(runtime& rt, const val& self, const call_args& args) {
  const arguments a(rt, "join", args, {"iterable"}, 1);
  require_defined(rt, *a.get(0));
  std::vector<text> parts;
  for (const val& item : rt.iterate(*a.get(0))) {
    if (item.as_text() == nullptr)
      rt.fail("join(): expected str instance, " + type_name(item) + " found");
    parts.push_back(*item.as_text());
  }
  return rt.make_text(join(rt, self_text(self), parts));
}

/// Returns whether all characters satisfy `test`, for methods such as isalpha().
template <class Test>
val all_characters(const text& t, Test test) {
  if (t.bytes.empty()) return val(false);
  for (std::size_t i = 0, n = 1; i < t.bytes.size(); i += n)
    if (!test(character_at(t.bytes, i, n))) return val(false);
  return val(true);
}

bool is_letter(char32_t c) { // outside ASCII: everything but spaces and symbols
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         (c >= 0xC0 && c != 0xD7 && c != 0xF7 && !is_space(c) && !(c >= 0x2000 && c <= 0x2BFF) &&
          !(c >= 0x3000 && c <= 0x3004) && !(c >= 0xFF00 && c <= 0xFF20) && c < 0x1F000);
}
bool is_ascii_digit(char32_t c) {
  return c >= '0' && c <= '9';
}

val isspace_method(runtime&, const val& self, const call_args&) {
  return all_characters(self_text(self), is_space);
}
val isdigit_method(runtime&, const val& self, const call_args&) {
  return all_characters(self_text(self), is_ascii_digit);
}
val isalpha_method(runtime&, const val& self, const call_args&) {
  return all_characters(self_text(self), is_letter);
}
val isalnum_method(runtime&, const val& self, const call_args&) {
  return all_characters(self_text(self),
                        [](char32_t c) { return is_letter(c) || is_ascii_digit(c); });
}
template <bool Upper>
val iscase_method(runtime&, const val& self, const call_args&) {
  return val(has_case(self_text(self), Upper));
}

template <int Where>
val pad_method(runtime& rt, const val& self, const call_args& args) {
  const arguments a(rt, "ljust/rjust/center", args, {"width", "fillchar"}, 1);
  const text* fill = a.string(1);
  if (fill && count_characters(fill->bytes) != 1)
    rt.fail("the fill character must be exactly one character long");
  return rt.make_text(pad(rt, self_text(self), a.whole(0, 0), fill ? fill->bytes : " ", Where));
}

val zfill_method(runtime& rt, const val& self, const call_args& args) {
  const arguments a(rt, "zfill", args, {"width"}, 1);
  const text& t = self_text(self);
  const bool sign = t.bytes.starts_with('-') || t.bytes.starts_with('+');
  if (!sign) return rt.make_text(pad(rt, t, a.whole(0, 0), "0", 1));
  text out = slice_bytes(t, 0, 1);
  out.append(pad(rt, slice_bytes(t, 1, t.bytes.size()), a.whole(0, 0) - 1, "0", 1));
  return rt.make_text(std::move(out));
}

val format_method(runtime& rt, const val& self, const call_args& args) {
  return rt.make_text(str_format(rt, self_text(self), args));
}

struct text_method {
  std::string_view name;
  method_fn method;
};

constexpr text_method methods[] = {
    {"strip", strip_method<sides::both>},
    {"lstrip", strip_method<sides::left>},
    {"rstrip", strip_method<sides::right>},
    {"split", split_method<false>},
    {"rsplit", split_method<true>},
    {"splitlines", splitlines_method},
    {"partition", partition_method<false>},
    {"rpartition", partition_method<true>},
    {"startswith", affix_method<false>},
    {"endswith", affix_method<true>},
    {"removeprefix", remove_affix_method<false>},
    {"removesuffix", remove_affix_method<true>},
    {"upper", case_method<true>},
    {"lower", case_method<false>},
    {"casefold", case_method<false>},
    {"capitalize", capitalize_method},
    {"title", title_method},
    {"replace", replace_method},
    {"find", find_text_position<false, false>},
    {"rfind", find_text_position<true, false>},
    {"index", find_text_position<false, true>},
    {"rindex", find_text_position<true, true>},
    {"count", count_text_method},
    {"join", join_method},
    {"isspace", isspace_method},
    {"isdigit", isdigit_method},
    {"isnumeric", isdigit_method},
    {"isdecimal", isdigit_method},
    {"isalpha", isalpha_method},
    {"isalnum", isalnum_method},
    {"isupper", iscase_method<true>},
    {"islower", iscase_method<false>},
    {"ljust", pad_method<-1>},
    {"rjust", pad_method<1>},
    {"center", pad_method<0>},
    {"zfill", zfill_method},
    {"format", format_method},
};

} // namespace

method_fn find_text_method(std::string_view name) {
  for (const text_method& m : methods)
    if (m.name == name) return m.method;
  return nullptr;
}

} // namespace twill::models::jinja
