// Memory and CPU limits of control groups, read from directory trees that the test writes.
#include "gpu/cgroup.hpp"

#include <filesystem>
#include <fstream>
#include <string>
#include <unistd.h>

#include "gpu/machine.hpp"
#include "tests/catch.hpp"

namespace fs = std::filesystem;
using twill::gpu::read_cgroup_limits;

namespace {

constexpr std::int64_t mib = 1 << 20;

/// The root of a file system with the given files.
struct tree {
  tree() {
    static int n = 0;
    root = fs::temp_directory_path() /
           ("twill-cgroup-" + std::to_string(::getpid()) + "-" + std::to_string(n++));
  }
  tree(const tree&) = delete;
  tree& operator=(const tree&) = delete;
  ~tree() {
    std::error_code ignored;
    fs::remove_all(root, ignored);
  }
  void write(const std::string& file, const std::string& text) const {
    fs::create_directories((root / file).parent_path());
    std::ofstream(root / file) << text << "\n";
  }
  void version_2(const std::string& path, const std::string& shown = "/") const {
    write("proc/self/cgroup", "0::" + path);
    write("proc/self/mountinfo", "24 1 0:22 / / rw - ext4 /dev/sda rw\n30 24 0:27 " + shown +
                                     " /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw");
    write("sys/fs/cgroup/cgroup.controllers", "cpu memory");
  }
  void version_1(const std::string& path, const std::string& shown = "/") const {
    write("proc/self/cgroup", "11:memory:" + path + "\n4:cpu,cpuacct:" + path + "\n0::/");
    write("proc/self/mountinfo",
          "31 24 0:28 " + shown +
              " /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
              "32 24 0:29 " +
              shown + " /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct");
  }
  fs::path root;
};

} // namespace

TEST_CASE("without files there are no limits") {
  const tree t;
  const auto limits = read_cgroup_limits(t.root);
  CHECK_FALSE(limits.memory_bytes);
  CHECK_FALSE(limits.free_memory_bytes);
  CHECK_FALSE(limits.processors);
}

TEST_CASE("version 2: the least limit from the process's group up to the root counts") {
  const tree t;
  t.version_2("/system.slice/twill.service");
  t.write("sys/fs/cgroup/system.slice/memory.max", std::to_string(800 * mib));
  t.write("sys/fs/cgroup/system.slice/memory.current", std::to_string(700 * mib));
  t.write("sys/fs/cgroup/system.slice/memory.stat",
          "anon 1\ninactive_file " + std::to_string(500 * mib));
  t.write("sys/fs/cgroup/system.slice/cpu.max", "150000 100000");
  t.write("sys/fs/cgroup/system.slice/twill.service/memory.max", "max");
  t.write("sys/fs/cgroup/system.slice/twill.service/memory.high", std::to_string(900 * mib));
  t.write("sys/fs/cgroup/system.slice/twill.service/memory.current", std::to_string(850 * mib));
  t.write("sys/fs/cgroup/system.slice/twill.service/cpu.max", "max 100000");
  const auto limits = read_cgroup_limits(t.root);
  CHECK(limits.memory_bytes == 800 * mib);
  CHECK(limits.free_memory_bytes == 50 * mib); // memory.high leaves less than the parent's max
  CHECK(limits.processors == 1.5);
}

TEST_CASE("version 2: a container sees its own group as the root") {
  const tree t;
  t.version_2("/");
  t.write("sys/fs/cgroup/memory.max", std::to_string(64 * mib));
  t.write("sys/fs/cgroup/cpu.max", "200000 100000");
  CHECK(read_cgroup_limits(t.root).memory_bytes == 64 * mib);
  CHECK(read_cgroup_limits(t.root).processors == 2.0);
}

TEST_CASE("version 1: memory and processor time have hierarchies of their own") {
  const tree t;
  t.version_1("/jobs/7");
  t.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712");
  t.write("sys/fs/cgroup/memory/jobs/7/memory.limit_in_bytes", std::to_string(300 * mib));
  t.write("sys/fs/cgroup/memory/jobs/7/memory.usage_in_bytes", std::to_string(200 * mib));
  t.write("sys/fs/cgroup/memory/jobs/7/memory.stat",
          "cache 1\ntotal_inactive_file " + std::to_string(100 * mib));
  t.write("sys/fs/cgroup/cpu,cpuacct/jobs/7/cpu.cfs_quota_us", "50000");
  t.write("sys/fs/cgroup/cpu,cpuacct/jobs/7/cpu.cfs_period_us", "100000");
  t.write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1");
  t.write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000");
  const auto limits = read_cgroup_limits(t.root);
  CHECK(limits.memory_bytes == 300 * mib);
  CHECK(limits.free_memory_bytes == 200 * mib);
  CHECK(limits.processors == 0.5);
}

TEST_CASE("version 1: a container without a namespace names its group from outside") {
  const tree t;
  t.version_1("/docker/abc", "/docker/abc");
  t.write("sys/fs/cgroup/memory/memory.limit_in_bytes", std::to_string(128 * mib));
  CHECK(read_cgroup_limits(t.root).memory_bytes == 128 * mib);
}

TEST_CASE("a path out of the mount, or nonsense, is not followed") {
  const tree t;
  t.version_2("/../../etc");
  t.write("sys/fs/cgroup/memory.max", "garbage");
  t.write("sys/fs/cgroup/cpu.max", "");
  t.write("sys/fs/etc/memory.max", "4096");
  CHECK_FALSE(read_cgroup_limits(t.root).memory_bytes);
  CHECK_FALSE(read_cgroup_limits(t.root).processors);
}

TEST_CASE("this machine has a core and some memory") {
  namespace machine = twill::gpu::machine;
  CHECK(machine::usable_cores() >= 1);
  CHECK(machine::available_bytes() > 0);
  CHECK(machine::available_bytes() <= machine::memory_bytes());
}
