// The one place where fmt is compiled: from its headers, so that the provider brings no library
// into other people's processes, but not in every file, which would cost four seconds each.
//
// Nothing here is printed by a locale's rules, and std::locale would bring 600 KB of the C++ library into each
// program, and its set-up.
#define FMT_STATIC_THOUSANDS_SEPARATOR ','
#include <fmt/format-inl.h>

// Instances that other files need and fmt's own do not include.
template char fmt::detail::decimal_point_impl(fmt::detail::locale_ref);
template fmt::detail::thousands_sep_result<char> fmt::detail::thousands_sep_impl(fmt::detail::locale_ref);
#if FMT_VERSION >= 100000 && FMT_VERSION < 110000
template void fmt::detail::vformat_to(fmt::detail::buffer<char>&, fmt::string_view, fmt::detail::vformat_args<>::type,
                                      fmt::detail::locale_ref);
#endif
