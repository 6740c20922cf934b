// SPDX-License-Identifier: MIT
#pragma once

#include <cusync/errors.hpp>    // invalid_argument
#include <cusync/stage_ref.hpp> // stage_ref, stage_link, inputs, outputs, reads

#include <optional> // optional
#include <string>   // string
#include <tuple>    // tuple
#include <utility>  // index_sequence, move
#include <vector>   // vector

namespace cusync {

/// Memory that several stages of a chain write or read: a name for the checks, no pointer.
/// `chain::buffer` makes it.
struct buffer {
  static constexpr u32 none = 0xffffffff;
  u32 index = none;
};

struct stage_options {
  u32 blocks = 0; ///< Blocks of the launch; 0: one a tile. Fewer need `tile_source::counter`.
  /// Where the stage's tiles lie. Needed only where another stage writes the same memory: a chain that
  /// would overwrite what may still be read is then refused.
  buffer writes{};
  element_extent tile{1, 1}; ///< Elements of a tile in that buffer.
};

/// A stage as its chain sees it, whatever its order and policies.
class any_stage {
public:
  /// A set of semaphores that this stage posts.
  struct output_set {
    u32 semaphores = 0; ///< 0: no consumer declared.
    u32 offset = 0;     ///< Of the first one in the chain's array.
  };
  /// An input with its declared producer.
  struct input_edge {
    int operand = 0;
    const any_stage* producer = nullptr; ///< Null: no dependence declared.
    u32 output = 0;                      ///< Which of the producer's sets guards it.
    bool whole_grid = false;             ///< Policy `GridSync`.
    bool unguarded = false;              ///< Policy `NoSync`: only launch order can make it safe.
  };

  any_stage(std::string name, u32 index, tile_extent grid, tile_source source,
            stage_options options)
      : name_(std::move(name)), index_(index), grid_(grid), source_(source), options_(options) {}
  virtual ~any_stage() = default;
  any_stage(const any_stage&) = delete; // edges and bound kernels point here
  any_stage& operator=(const any_stage&) = delete;

  const std::string& name() const { return name_; }
  u32 index() const { return index_; }
  tile_extent grid() const { return grid_; }
  u32 tiles() const { return static_cast<u32>(grid_.count()); }
  u32 blocks() const { return options_.blocks != 0 ? options_.blocks : tiles(); }
  tile_source source() const { return source_; }
  buffer writes() const { return options_.writes; }
  element_extent tile_elements() const { return options_.tile; }
  /// Draws in one run: a block stops after its first invalid ticket, or after its one tile.
  u32 tickets() const { return source() == tile_source::counter ? tiles() + blocks() : blocks(); }
  const std::vector<input_edge>& declared_inputs() const { return inputs_; }
  std::vector<output_set>& declared_outputs() { return outputs_; }
  const std::vector<output_set>& declared_outputs() const { return outputs_; }

  /// The tile at `position` of the stage's order.
  virtual tile_coord tile_at(u32 position) const = 0;

  // What simulator and checker ask of policies and dependences; inputs and outputs by their position
  // in the stage's type.
  virtual step_range steps(u32 input, tile_coord tile) const = 0;
  virtual tile_range range(u32 input, tile_coord tile) const = 0;
  virtual tile_range range(u32 input, tile_coord tile, u32 step) const = 0;
  /// All tiles of a row, of one slice, read and wait for the same through this input.
  virtual bool same_in_a_row(u32 input) const = 0;
  virtual semaphore_range guards(u32 input, tile_coord tile) const = 0;
  virtual semaphore_range guards(u32 input, tile_coord tile, u32 step) const = 0;
  /// Looks of a warp of `lanes` that waits before each step and never has to: a range that it has just
  /// waited for costs none. `passed` is the last such range, before and after.
  virtual u32 looks(u32 input, tile_coord tile, u32 lanes, semaphore_range& passed) const {
    return count_looks(steps(input, tile), lanes, passed,
                       [&](u32 step) { return guards(input, tile, step); });
  }
  virtual u32 semaphore_of(u32 output, tile_coord tile) const = 0;
  virtual u32 posts_expected(u32 output, u32 semaphore) const = 0;

protected:
  template <class Guards>
  static u32 count_looks(step_range steps, u32 lanes, semaphore_range& passed,
                         const Guards& guards_of) {
    u32 count = 0;
    for (u32 step = steps.begin; step < steps.end; ++step) {
      const semaphore_range next = guards_of(step);
      if (next == passed || next.count() == 0) continue;
      count += ceil_div(next.count(), lanes);
      passed = next;
    }
    return count;
  }

  std::vector<input_edge> inputs_;
  std::vector<output_set> outputs_;

private:
  std::string name_;
  u32 index_;
  tile_extent grid_;
  tile_source source_;
  stage_options options_;
};

template <tile_order Order, class Inputs, class Outputs,
          tile_source Source = tile_source::block_index>
class CuStage;

/// One kernel of a chain: its grid of tiles, the order in which they are taken, what it waits for
/// and what it posts. The chain owns it; a kernel gets a `ref`.
template <tile_order Order, class... Reads, class... Policies, tile_source Source>
class CuStage<Order, inputs<Reads...>, outputs<Policies...>, Source> final : public any_stage {
public:
  /// What a kernel takes as its last argument.
  template <class Backend>
  using ref = stage_ref<Backend, Order, inputs<Reads...>, outputs<Policies...>, Source>;

  CuStage(std::string name, u32 index, tile_extent grid, Order order, stage_options options)
      : any_stage(std::move(name), index, grid, Source, options), order_(order) {
    inputs_ = {input_edge{Reads::operand}...};
    outputs_.resize(sizeof...(Policies));
  }

  tile_coord tile_at(u32 position) const override { return order_.tile_at(position, grid()); }

  step_range steps(u32 input, tile_coord tile) const override {
    return of_input<step_range>(input,
                                [&](const auto& side) { return side.dependence.steps(tile); });
  }
  tile_range range(u32 input, tile_coord tile) const override {
    return of_input<tile_range>(input,
                                [&](const auto& side) { return side.dependence.reads(tile); });
  }
  tile_range range(u32 input, tile_coord tile, u32 step) const override {
    return of_input<tile_range>(
        input, [&](const auto& side) { return side.dependence.reads(tile, step); });
  }
  bool same_in_a_row(u32 input) const override {
    return of_input<bool>(input, []<class Side>(const Side&) {
      return same_reads_in_a_row<decltype(Side::dependence)>;
    });
  }
  semaphore_range guards(u32 input, tile_coord tile) const override {
    return of_input<semaphore_range>(
        input, [&](const auto& side) { return side.policy.guards(side.dependence.reads(tile)); });
  }
  semaphore_range guards(u32 input, tile_coord tile, u32 step) const override {
    return of_input<semaphore_range>(input, [&](const auto& side) {
      return side.policy.guards(side.dependence.reads(tile, step));
    });
  }
  u32 looks(u32 input, tile_coord tile, u32 lanes, semaphore_range& passed) const override {
    return of_input<u32>(input, [&](const auto& side) {
      return count_looks(side.dependence.steps(tile), lanes, passed, [&](u32 step) {
        return side.policy.guards(side.dependence.reads(tile, step));
      });
    });
  }
  u32 semaphore_of(u32 output, tile_coord tile) const override {
    return of_output(output, [&](const auto& policy) -> u32 { return policy.semaphore_of(tile); });
  }
  u32 posts_expected(u32 output, u32 semaphore) const override {
    return of_output(output,
                     [&](const auto& policy) -> u32 { return policy.posts_expected(semaphore); });
  }

  /// The set of semaphores for a consumer with this policy: an equal one, else a free one.
  template <sync_policy Policy> u32 provide(const Policy& policy) {
    constexpr bool declared = (std::is_same_v<Policy, Policies> || ...);
    static_assert(declared, "the producer's stage type declares no outputs<> with this policy");
    std::optional<u32> found;
    const auto offer = [&]<std::size_t I>(std::integral_constant<std::size_t, I>) {
      auto& slot = std::get<I>(output_policies_);
      if constexpr (std::is_same_v<std::decay_t<decltype(slot)>, std::optional<Policy>>)
        if (!found && (!slot || *slot == policy)) {
          slot = policy;
          outputs_[I].semaphores = policy.semaphore_count();
          found = static_cast<u32>(I);
        }
    };
    for_each_index<sizeof...(Policies)>(offer);
    if (!found)
      throw invalid_argument("stage '" + name() +
                             "' has no set of semaphores left for another policy of this type with "
                             "other parameters; list the policy once more in its outputs<>");
    return *found;
  }

  /// Declares what operand `Operand` reads. `CuSync::dependency` calls this once it has checked both
  /// sides.
  template <int Operand, sync_policy Policy, dependence Dependence>
  void depend(const any_stage& producer, u32 output, const Policy& policy,
              const Dependence& dependence, bool whole_grid, bool unguarded) {
    constexpr std::size_t at = position_of<Operand>();
    static_assert(at < sizeof...(Reads),
                  "the consumer's stage type declares no reads<> of this operand");
    auto& side = detail::find_input<Operand>(input_sides_);
    static_assert(
        std::is_same_v<std::decay_t<decltype(side)>, input_ref<reads<Operand, Policy, Dependence>>>,
        "the consumer's reads<> names another policy or dependence type for this operand");
    if (inputs_[at].producer != nullptr)
      throw invalid_argument("operand " + std::to_string(Operand) + " of stage '" + name() +
                             "' depends on stage '" + inputs_[at].producer->name() +
                             "' already; give the second producer an operand of its own");
    side.policy = policy;
    side.dependence = dependence;
    inputs_[at].producer = &producer;
    inputs_[at].output = output;
    inputs_[at].whole_grid = whole_grid;
    inputs_[at].unguarded = unguarded;
  }

  /// The kernel's view for one launch. `waits` has an entry an input, `posted` one an output;
  /// `semaphores` is the chain's array in the memory of the launch's state.
  template <class Backend>
  ref<Backend> view(const stage_link& link, u32* semaphores, const std::vector<wait_kind>& waits,
                    const std::vector<bool>& posted) const {
    ref<Backend> view;
    view.link = link;
    view.order = order_;
    view.grid = grid();
    const auto fill_input = [&]<std::size_t I>(std::integral_constant<std::size_t, I>) {
      using read = std::tuple_element_t<I, std::tuple<Reads...>>;
      auto& side = static_cast<input_ref<read>&>(view);
      side = static_cast<const input_ref<read>&>(input_sides_);
      side.grid_wait = waits[I] == wait_kind::grid;
      if (waits[I] == wait_kind::semaphores) {
        const any_stage& producer = *inputs_[I].producer;
        side.semaphores = semaphores + producer.declared_outputs()[inputs_[I].output].offset;
      }
    };
    for_each_index<sizeof...(Reads)>(fill_input);
    const auto fill_output = [&]<std::size_t I>(std::integral_constant<std::size_t, I>) {
      using policy = std::tuple_element_t<I, std::tuple<Policies...>>;
      auto& side = static_cast<output_ref<I, policy>&>(view);
      if (posted[I]) side = {*std::get<I>(output_policies_), semaphores + outputs_[I].offset};
    };
    for_each_index<sizeof...(Policies)>(fill_output);
    return view;
  }

private:
  struct input_side : input_ref<Reads>... {};

  template <std::size_t Count, class Visit> static void for_each_index(const Visit& visit) {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (visit(std::integral_constant<std::size_t, I>{}), ...);
    }
    (std::make_index_sequence<Count>{});
  }

  /// What `ask` says of the input at a position known only at run time.
  template <class Result, class Ask> Result of_input(u32 input, const Ask& ask) const {
    Result result{};
    for_each_index<sizeof...(Reads)>([&]<std::size_t I>(std::integral_constant<std::size_t, I>) {
      using side = input_ref<std::tuple_element_t<I, std::tuple<Reads...>>>;
      if (I == input) result = ask(static_cast<const side&>(input_sides_));
    });
    return result;
  }
  /// Of the policy of an output that a consumer has declared.
  template <class Ask> u32 of_output(u32 output, const Ask& ask) const {
    u32 result = 0;
    for_each_index<sizeof...(Policies)>([&]<std::size_t I>(std::integral_constant<std::size_t, I>) {
      if (I == output && std::get<I>(output_policies_))
        result = ask(*std::get<I>(output_policies_));
    });
    return result;
  }

  template <int Operand> static constexpr std::size_t position_of() {
    std::size_t position = 0;
    const bool found = ((Reads::operand == Operand || (++position, false)) || ...);
    return found ? position : sizeof...(Reads);
  }

  Order order_;
  input_side input_sides_{};
  std::tuple<std::optional<Policies>...> output_policies_;
};

} // namespace cusync
