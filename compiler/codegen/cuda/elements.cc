// A kernel without reductions: threads lie along the vector axis and over the rows. With packets a thread first
// reads all that it needs, then computes, so that its loads are in flight together.
#include "compiler/codegen/cuda/emitter.h"

namespace umbra::codegen {

namespace {

class ElementsEmitter : private CudaEmitter {
 public:
  ElementsEmitter(const CudaTask& task, Writer* out)
      : CudaEmitter(task.plan, task.kernel, task.options, task.variant, out) {}

  void Run(const std::string& name) {
    const std::vector<int> rows = Axes(0, signature_.row_axes);
    DeclareArguments(name);
    OpenKernel(name, 256);
    DeclareParameters(HasRows(rows) ? Axes(0, kernel_.rank()) : Axes(vector_axis_, kernel_.rank()));
    OpenRows(rows, Index("blockIdx.y") + " * blockDim.y + threadIdx.y", "gridDim.y * blockDim.y");
    DeclareRowPointers();
    DeclareRowValues(phase().row_values);
    if (variant_.vector) Packets();
    else Elements();
    CloseRows(rows);
    out_.Close();
  }

 private:
  const Phase& phase() const { return kernel_.phases[0]; }
  std::string i() const { return fmt::format("i{}", vector_axis_); }

  void Elements() {
    out_.Line("const {} {} = {} * blockDim.x + threadIdx.x;", index_type_, i(), Index("blockIdx.x"));
    out_.Open("if ({} < {})", i(), ExtentName(vector_axis_));
    Names names = names_;
    DeclareElements(phase(), i(), &names);
    StoreElements(phase(), i());
    out_.Close();
  }

  void Packets() {
    // One packet or two of each operand.
    const int lanes = schedule_.lanes, packets = schedule_.packets;
    const std::vector<int> loads = LoadedOperands(phase());
    const std::string n = ExtentName(vector_axis_);
    const std::string last = packets > 1 ? "first + step" : "first";
    out_.Line("const {} first = ({} * {}blockDim.x + threadIdx.x) * {};", index_type_, Index("blockIdx.x"),
              packets > 1 ? "2 * " : "", lanes);
    if (packets > 1) out_.Line("const {} step = blockDim.x * {};", index_type_, lanes);
    const std::string array = packets > 1 ? "[2]" : "", at = packets > 1 ? "[u]" : "";
    const std::string here = packets > 1 ? "first + u * step" : "first";
    std::vector<std::string> pack(operands_.size());
    for (int k : loads) {
      pack[static_cast<std::size_t>(k)] = names_.Make(operands_[static_cast<std::size_t>(k)].name + "_pack");
      out_.Line("pack<{}, {}> {}{};", ElementType(OperandType(k)), lanes, pack[static_cast<std::size_t>(k)], array);
    }
    const auto read = [&](const char* form) {
      OpenPackets();
      for (int k : loads) {
        const std::string& name = operands_[static_cast<std::size_t>(k)].name;
        out_.Line(fmt::runtime(form), pack[static_cast<std::size_t>(k)] + at, lanes, name, here, n);
      }
      ClosePackets();
    };
    if (!loads.empty()) {
      out_.Open("if ({} + {} <= {})", last, lanes, n);
      read("{} = load_pack<{}>({} + {});");
      out_.Middle("} else {");
      read(packets > 1 ? "{0} = load_pack_head<{1}>({2} + {3}, {4} - ({3}));" : "{0} = load_pack_head<{1}>({2} + {3}, {4} - {3});");
      out_.Close();
    }
    OpenPackets();
    std::vector<std::string> results(operands_.size());
    Names names = names_;
    for (int k : StoredOperands(phase())) {
      results[static_cast<std::size_t>(k)] = names.Make(operands_[static_cast<std::size_t>(k)].name + "_pack");
      out_.Line("pack<{}, {}> {};", ElementType(OperandType(k)), lanes, results[static_cast<std::size_t>(k)]);
    }
    out_.Line("#pragma unroll");
    out_.Open("for (int k = 0; k < {}; ++k)", lanes);
    for (int k : loads) at_hand_[k] = pack[static_cast<std::size_t>(k)] + at + "[k]";
    DeclareElements(phase(), "k", &names);
    for (const auto& store : phase().stores)
      out_.Line("{}[k] = {};", results[static_cast<std::size_t>(store.operand)], AsPacket(store.value).text);
    at_hand_.clear();
    out_.Close();
    for (const auto& store : phase().stores)
      out_.Line("store_pack_head({0} + {1}, {2}, {3} - {4});", operands_[static_cast<std::size_t>(store.operand)].name, here,
                results[static_cast<std::size_t>(store.operand)], n, packets > 1 ? "(" + here + ")" : here);
    ClosePackets();
  }

  void OpenPackets() {
    if (schedule_.packets == 1) return;
    out_.Line("#pragma unroll");
    out_.Open("for (int u = 0; u < 2; ++u)");
  }
  void ClosePackets() {
    if (schedule_.packets > 1) out_.Close();
  }
};

}  // namespace

void EmitCudaElements(const CudaTask& task, const std::string& name, Writer* out) { ElementsEmitter(task, out).Run(name); }

}  // namespace umbra::codegen
