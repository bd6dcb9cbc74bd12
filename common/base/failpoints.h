#ifndef BATON_COMMON_BASE_FAILPOINTS_H_
#define BATON_COMMON_BASE_FAILPOINTS_H_

// Failpoints: named places in the pure cores, which cost nothing but in the
// build that tests/simulation makes of them with BATON_FAILPOINTS defined.
//   BATON_FAILPOINT("prefill.push");               the process may die here
//   if (BATON_FAILPOINT_FAILS("pool.x")) return e;  or the operation may fail
// The list of all failpoints is made of the code that is linked, so a test can
// demand that every one of them was used.
#ifdef BATON_FAILPOINTS

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <vector>

namespace baton {

struct Failpoint {
  std::string_view name;
  bool can_fail = false;
};

// Told about every failpoint that is reached, on the thread that set it.
class FailpointObserver {
 public:
  virtual ~FailpointObserver() = default;
  // True: the operation is to fail.
  virtual bool Reached(const Failpoint& point) = 0;
};
inline thread_local FailpointObserver* failpoint_observer = nullptr;

// Complete before main().
inline std::vector<const Failpoint*>& AllFailpoints() {
  static std::vector<const Failpoint*> all;
  return all;
}

template <size_t kSize>
struct FailpointName {
  char text[kSize];
  // Implicit, so that a literal names a site.
  constexpr FailpointName(const char (&name)[kSize]) {
    std::copy_n(name, kSize, text);
  }
};

template <FailpointName kName, bool kCanFail>
struct FailpointSite {
  static constexpr Failpoint point{{kName.text, sizeof(kName.text) - 1},
                                   kCanFail};
  static inline const bool listed = [] {
    AllFailpoints().push_back(&point);
    return true;
  }();
  static bool Reach() {
    return listed && failpoint_observer != nullptr &&
           failpoint_observer->Reached(point);
  }
};

}  // namespace baton

#define BATON_FAILPOINT(name) \
  static_cast<void>(::baton::FailpointSite<name, false>::Reach())
#define BATON_FAILPOINT_FAILS(name) \
  (::baton::FailpointSite<name, true>::Reach())

#else

#define BATON_FAILPOINT(name) static_cast<void>(0)
#define BATON_FAILPOINT_FAILS(name) false

#endif

#endif  // BATON_COMMON_BASE_FAILPOINTS_H_
