// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>     // size_t
#include <string>      // string
#include <string_view> // string_view

namespace cusync::analyze {

/// What a person reads of a kernel's name: demangled, without return type, namespaces and parameters,
/// of the template arguments the telling one, and at most `width` characters.
///
///     void at::native::vectorized_elementwise_kernel<8, at::native::CUDAFunctor_add<c10::Half>,
///         std::array<char*, 3ul>>(int, ...)
///     -> vectorized_elementwise_kernel<CUDAFunctor_add>
std::string short_name(std::string_view name, std::size_t width);

/// The name, demangled where that is cheap, without bytes that a terminal or JSON cannot take.
std::string full_name(std::string_view name);

/// The same bytes where they are printable UTF-8, '?' in place of others.
std::string printable(std::string_view text);

} // namespace cusync::analyze
