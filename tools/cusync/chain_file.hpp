// SPDX-License-Identifier: MIT
#pragma once

#include <cusync/sim/chain_description.hpp> // chain_description

#include <string> // string

namespace cusync::cli {

/// Reads a chain's description: docs/check.md, docs/chain.schema.json.
///
/// Throws `file_error`, an `invalid_argument`, with file, line and path of the offending value. What
/// makes a chain wrong, not a file, is left to `sim::check`: an order that is no permutation, a policy
/// that covers too little, a wrong number of posts.
sim::chain_description read_chain(const std::string& path);

/// The same for text; `name` stands for the file in messages.
sim::chain_description parse_chain(std::string text, const std::string& name);

} // namespace cusync::cli
