#include "models/checkpoint/pytorch/unpickle.hpp"

#include <array>
#include <cstring>
#include <string>
#include <utility>

#include "models/checkpoint/pytorch/pickle_machine.hpp"
#include "models/checkpoint/quoted.hpp"

namespace twill::models::pytorch {
namespace {

struct known_global {
  std::string_view module;
  std::string_view name;
  const char* element; ///< element type if the name is a storage class; nullptr for functions
};

constexpr std::array globals = {
    known_global{"collections", "OrderedDict", nullptr},
    known_global{"torch._utils", "_rebuild_tensor_v2", nullptr},
    known_global{"torch._utils", "_rebuild_parameter", nullptr},
    known_global{"torch", "FloatStorage", "F32"},
    known_global{"torch", "HalfStorage", "F16"},
    known_global{"torch", "BFloat16Storage", "BF16"},
    known_global{"torch", "DoubleStorage", "F64"},
    known_global{"torch", "LongStorage", "I64"},
    known_global{"torch", "IntStorage", "I32"},
    known_global{"torch", "ShortStorage", "I16"},
    known_global{"torch", "CharStorage", "I8"},
    known_global{"torch", "ByteStorage", "U8"},
    known_global{"torch", "BoolStorage", "BOOL"},
};
constexpr std::int64_t ordered_dict = 0, rebuild_tensor = 1, rebuild_parameter = 2;

/// Reads one pickle.
class unpickler {
public:
  explicit unpickler(std::span<const std::byte> pickle) : pickle_(pickle) {}

  result<std::vector<pickled_tensor>> run() {
    while (!machine_.failed() && !stopped_)
      run_opcode(static_cast<unsigned char>(take<char>()));
    if (!machine_.failed()) collect(machine_.result());
    if (machine_.failed()) return machine_.take_failure();
    return std::move(tensors_);
  }

private:
  template <class T>
  T take() {
    T number{};
    if (const char* from = take_bytes(sizeof number)) std::memcpy(&number, from, sizeof number);
    return number;
  }

  const char* take_bytes(std::uint64_t n) {
    if (n > pickle_.size() - at_) {
      bad("it ends inside an opcode");
      return nullptr;
    }
    const char* from = reinterpret_cast<const char*>(pickle_.data()) + at_;
    at_ += static_cast<std::size_t>(n);
    return from;
  }

  std::string_view take_text(std::uint64_t n) {
    const char* from = take_bytes(n);
    return from == nullptr ? std::string_view{} : std::string_view(from, n);
  }

  std::string_view take_line() {
    const std::string_view rest(reinterpret_cast<const char*>(pickle_.data()) + at_,
                                pickle_.size() - at_);
    const std::size_t end = rest.find('\n');
    if (end == std::string_view::npos) {
      bad("it ends inside a name");
      return {};
    }
    at_ += end + 1;
    return rest.substr(0, end);
  }

  void bad(const std::string& why) { machine_.fail(errc::bad_format, "pickle: " + why); }
  void unsupported(const std::string& why) { machine_.fail(errc::unsupported, "pickle: " + why); }

  void push_integer(std::int64_t i) { machine_.push({object_kind::integer, i, {}, {}}); }
  void push_text(std::string_view t) { machine_.push({object_kind::text, 0, t, {}}); }
  void push_items(object_kind kind, std::vector<object_id> items) {
    machine_.push({kind, 0, {}, std::move(items)});
  }

  void run_opcode(unsigned char opcode);
  bool step_value(unsigned char opcode);
  bool step_container(unsigned char opcode);
  void push_long(std::uint64_t n);
  void push_tuple(std::size_t n);
  void push_global(std::string_view module, std::string_view name);
  void add_items(object_kind kind, std::vector<object_id> items);
  void reduce();
  void rebuild(const std::vector<object_id>& arguments);
  void load_storage();
  void collect(object_id dictionary);
  bool numbers(object_id tuple, std::vector<std::int64_t>& out);

  bool is(object_id id, object_kind kind) const { return machine_.at(id).kind == kind; }

  std::span<const std::byte> pickle_;
  std::size_t at_ = 0;
  bool stopped_ = false;
  pickle_machine machine_;
  std::vector<pickled_tensor> tensors_;
};

void unpickler::run_opcode(unsigned char opcode) {
  if (machine_.failed() || step_value(opcode) || step_container(opcode)) return;
  switch (opcode) {
  case 0x80: // PROTO
    if (const int version = take<unsigned char>(); version < 2 || version > 5)
      unsupported("protocol must be 2 to 5, got " + std::to_string(version));
    return;
  case 0x95: // FRAME: its length is not needed
    take<std::uint64_t>();
    return;
  case 'c': { // GLOBAL
    const std::string_view module = take_line();
    return push_global(module, take_line());
  }
  case 0x93: { // STACK_GLOBAL
    const object_id name = machine_.pop();
    const object_id module = machine_.pop();
    if (!is(name, object_kind::text) || !is(module, object_kind::text))
      return bad("a global's name is not text");
    return push_global(machine_.at(module).text, machine_.at(name).text);
  }
  case 'q': // BINPUT
    return machine_.remember(take<unsigned char>());
  case 'r': // LONG_BINPUT
    return machine_.remember(take<std::uint32_t>());
  case 0x94: // MEMOIZE
    return machine_.remember_next();
  case 'h': // BINGET
    return machine_.recall(take<unsigned char>());
  case 'j': // LONG_BINGET
    return machine_.recall(take<std::uint32_t>());
  case 'Q': // BINPERSID
    return load_storage();
  case 'R': // REDUCE
    return reduce();
  case 'b': // BUILD: the attributes of the dictionary (its _metadata) are not used
    machine_.pop();
    machine_.top(object_kind::dictionary);
    return;
  case '.': // STOP
    stopped_ = true;
    return;
  default:
    unsupported("opcode " + std::to_string(opcode) + " at byte " + std::to_string(at_ - 1) +
                " is not one that tensors need");
  }
}

bool unpickler::step_value(unsigned char opcode) {
  switch (opcode) {
  case 'N': // NONE
    machine_.push_none();
    return true;
  case 0x88: // NEWTRUE
  case 0x89: // NEWFALSE
    machine_.push_boolean(opcode == 0x88);
    return true;
  case 'J': // BININT
    push_integer(take<std::int32_t>());
    return true;
  case 'K': // BININT1
    push_integer(take<unsigned char>());
    return true;
  case 'M': // BININT2
    push_integer(take<std::uint16_t>());
    return true;
  case 0x8a: // LONG1
    push_long(take<unsigned char>());
    return true;
  case 'G': // BINFLOAT: tensors do not need its value
    take<double>();
    machine_.push({object_kind::real, 0, {}, {}});
    return true;
  case 'X': // BINUNICODE
    push_text(take_text(take<std::uint32_t>()));
    return true;
  case 0x8c: // SHORT_BINUNICODE
    push_text(take_text(take<unsigned char>()));
    return true;
  default:
    return false;
  }
}

bool unpickler::step_container(unsigned char opcode) {
  switch (opcode) {
  case '(': // MARK
    machine_.mark();
    return true;
  case ')': // EMPTY_TUPLE
    push_tuple(0);
    return true;
  case 0x85: // TUPLE1
  case 0x86: // TUPLE2
  case 0x87: // TUPLE3
    push_tuple(opcode - 0x84U);
    return true;
  case 't': // TUPLE
    push_items(object_kind::tuple, machine_.pop_marked());
    return true;
  case ']': // EMPTY_LIST
    push_items(object_kind::list, {});
    return true;
  case '}': // EMPTY_DICT
    push_items(object_kind::dictionary, {});
    return true;
  case 'a': // APPEND
    add_items(object_kind::list, {machine_.pop()});
    return true;
  case 'e': // APPENDS
    add_items(object_kind::list, machine_.pop_marked());
    return true;
  case 's': { // SETITEM
    const object_id item = machine_.pop();
    add_items(object_kind::dictionary, {machine_.pop(), item});
    return true;
  }
  case 'u': // SETITEMS
    add_items(object_kind::dictionary, machine_.pop_marked());
    return true;
  default:
    return false;
  }
}

/// Pushes a little-endian two's complement integer of n bytes.
void unpickler::push_long(std::uint64_t n) {
  if (n > 8) return bad("a whole number of " + std::to_string(n) + " bytes");
  const std::string_view digits = take_text(n);
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < digits.size(); ++i)
    number |= std::uint64_t{static_cast<unsigned char>(digits[i])} << (8 * i);
  if (!digits.empty() && digits.size() < 8 && (digits.back() & 0x80) != 0)
    number |= ~std::uint64_t{0} << (8 * digits.size());
  push_integer(static_cast<std::int64_t>(number));
}

void unpickler::push_tuple(std::size_t n) {
  std::vector<object_id> items(n);
  while (n > 0)
    items[--n] = machine_.pop();
  push_items(object_kind::tuple, std::move(items));
}

void unpickler::push_global(std::string_view module, std::string_view name) {
  for (std::size_t i = 0; i < globals.size(); ++i)
    if (globals[i].module == module && globals[i].name == name)
      return machine_.push({object_kind::global, static_cast<std::int64_t>(i), {}, {}});
  if (machine_.failed()) return;
  unsupported("it asks for " + quoted_name(std::string(module) + "." + std::string(name)) +
              ", which no tensor needs; nothing was executed");
}

void unpickler::add_items(object_kind kind, std::vector<object_id> items) {
  const object_id into = machine_.top(kind);
  if (machine_.failed()) return;
  if (kind == object_kind::dictionary && items.size() % 2 != 0)
    return bad("a dictionary's key has no value");
  std::vector<object_id>& all = machine_.items(into);
  all.insert(all.end(), items.begin(), items.end());
}

void unpickler::load_storage() {
  const object_id id = machine_.pop();
  const std::vector<object_id> fields = machine_.at(id).items;
  const bool fits = is(id, object_kind::tuple) && fields.size() == 5 &&
                    is(fields[0], object_kind::text) && machine_.at(fields[0]).text == "storage" &&
                    is(fields[1], object_kind::global) && is(fields[2], object_kind::text) &&
                    is(fields[4], object_kind::integer);
  if (!fits || globals[static_cast<std::size_t>(machine_.at(fields[1]).integer)].element == nullptr)
    return bad("a persistent id is not that of a tensor's storage");
  push_items(object_kind::storage, {fields[1], fields[2], fields[4]});
}

void unpickler::reduce() {
  const object_id tuple = machine_.pop();
  const object_id callee = machine_.pop();
  if (machine_.failed()) return;
  if (!is(callee, object_kind::global) || !is(tuple, object_kind::tuple))
    return bad("REDUCE needs a global and a tuple");
  const std::vector<object_id> arguments = machine_.at(tuple).items;
  switch (machine_.at(callee).integer) {
  case ordered_dict:
    if (!arguments.empty()) return unsupported("OrderedDict with arguments");
    return push_items(object_kind::dictionary, {});
  case rebuild_tensor:
    return rebuild(arguments);
  case rebuild_parameter:
    if (arguments.empty() || !is(arguments[0], object_kind::tensor))
      return bad("_rebuild_parameter needs a tensor");
    return machine_.push_id(arguments[0]);
  default:
    return bad("a storage type is called");
  }
}

/// Handles _rebuild_tensor_v2(storage, offset, shape, strides, requires_grad, hooks[, metadata]).
void unpickler::rebuild(const std::vector<object_id>& arguments) {
  if (arguments.size() < 6 || !is(arguments[0], object_kind::storage) ||
      !is(arguments[1], object_kind::integer) || !is(arguments[2], object_kind::tuple) ||
      !is(arguments[3], object_kind::tuple))
    return bad("_rebuild_tensor_v2 needs a storage, an offset, a shape and strides");
  push_items(object_kind::tensor, {arguments[0], arguments[1], arguments[2], arguments[3]});
}

bool unpickler::numbers(object_id tuple, std::vector<std::int64_t>& out) {
  constexpr std::size_t most_dimensions = 8;
  const std::vector<object_id>& items = machine_.at(tuple).items;
  if (items.size() > most_dimensions) return false;
  for (const object_id item : items) {
    if (!is(item, object_kind::integer) || machine_.at(item).integer < 0) return false;
    out.push_back(machine_.at(item).integer);
  }
  return true;
}

void unpickler::collect(object_id dictionary) {
  if (machine_.failed()) return;
  if (!is(dictionary, object_kind::dictionary))
    return unsupported("it must hold a dictionary of tensors");
  const std::vector<object_id>& items = machine_.at(dictionary).items;
  for (std::size_t i = 0; i < items.size(); i += 2) {
    const object& name = machine_.at(items[i]);
    if (name.kind != object_kind::text) return bad("a tensor's name is not text");
    if (!is(items[i + 1], object_kind::tensor))
      return unsupported("entry " + quoted_name(name.text) + " must be a tensor");
    const object& tensor = machine_.at(items[i + 1]);
    const std::vector<object_id>& storage = machine_.at(tensor.items[0]).items;
    pickled_tensor t{name.text,
                     globals[static_cast<std::size_t>(machine_.at(storage[0]).integer)].element,
                     machine_.at(storage[1]).text,
                     machine_.at(storage[2]).integer,
                     machine_.at(tensor.items[1]).integer,
                     {},
                     {}};
    if (!numbers(tensor.items[2], t.shape) || !numbers(tensor.items[3], t.strides) ||
        t.shape.size() != t.strides.size())
      return bad("tensor " + quoted_name(name.text) + " has an impossible shape or strides");
    tensors_.push_back(std::move(t));
  }
}

} // namespace

result<std::vector<pickled_tensor>> unpickle_tensors(std::span<const std::byte> pickle) {
  return unpickler(pickle).run();
}

} // namespace twill::models::pytorch
