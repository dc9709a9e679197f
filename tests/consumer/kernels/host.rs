//! The kernels from Rust: every one of the table is listed with its operands, one is called by its entry.
use std::ffi::CStr;
use std::os::raw::{c_char, c_int, c_void};
use std::ptr::{addr_of, null, null_mut};

#[repr(C)]
struct Tensor {
    data: *mut c_void,
    shape: *const i64,
    stride: *const i64,
    rank: c_int,
    dtype: c_int,
    device: c_int,
    stream: *mut c_void,
}
#[repr(C)]
union Scalar {
    f32: f32,
    f64: f64,
    i32: i32,
    i64: i64,
}
#[repr(C)]
struct OperandDesc {
    name: *const c_char,
    dtype: c_int,
    rank: c_int,
    shape: *const i64,
}
#[repr(C)]
struct ScalarDesc {
    name: *const c_char,
    dtype: c_int,
}
#[repr(C)]
struct TargetDesc {
    name: *const c_char,
    functions: *const c_void,
}
#[repr(C)]
struct KernelDesc {
    name: *const c_char,
    signature: *const c_char,
    origin: *const c_char,
    num_inputs: c_int,
    num_outputs: c_int,
    num_scalars: c_int,
    num_targets: c_int,
    operands: *const OperandDesc,
    scalars: *const ScalarDesc,
    targets: *const TargetDesc,
    program: *const c_char,
    state: *mut *mut c_void,
    gpu: *const c_void,
}
const F32: c_int = 0; // dtypes are numbered in the order of umbra/dtypes.def
const DTYPES: [&str; 10] = ["f32", "f64", "f16", "bf16", "i8", "u8", "i16", "i32", "i64", "bool"];

#[link(name = "nn_shared")]
extern "C" {
    static nn_kernels: KernelDesc; // the first of several; the one behind the last has no name
    fn umbra_call(kernel: *const KernelDesc, operands: *const *const Tensor, scalars: *const Scalar, threads: c_int) -> c_int;
    fn umbra_error_message() -> *const c_char;
    fn umbra_kernel_target(kernel: *const KernelDesc) -> *const c_char;
}

unsafe fn text<'a>(from: *const c_char) -> &'a str {
    CStr::from_ptr(from).to_str().expect("a text is not UTF-8")
}
unsafe fn list<'a, T>(first: *const T, count: c_int) -> &'a [T] {
    if count == 0 { &[] } else { std::slice::from_raw_parts(first, count as usize) }
}

fn kernels() -> Vec<&'static KernelDesc> {
    unsafe {
        let first = addr_of!(nn_kernels);
        (0..).map(|k| &*first.add(k)).take_while(|kernel| !kernel.name.is_null()).collect()
    }
}

fn describe(kernel: &KernelDesc) -> String {
    unsafe {
        let mut said = format!("{} {}:", text(kernel.origin), text(kernel.name));
        for (k, operand) in list(kernel.operands, kernel.num_inputs + kernel.num_outputs).iter().enumerate() {
            said += &format!(" {} {}: {}{:?}", if k < kernel.num_inputs as usize { "in" } else { "out" }, text(operand.name),
                             DTYPES[operand.dtype as usize], list(operand.shape, operand.rank));
        }
        for scalar in list(kernel.scalars, kernel.num_scalars) {
            said += &format!(" number {}: {}", text(scalar.name), DTYPES[scalar.dtype as usize]);
        }
        let targets: Vec<_> = list(kernel.targets, kernel.num_targets).iter().map(|t| text(t.name)).collect();
        said + " for " + &targets.join(", ")
    }
}

fn dense(data: &mut [f32], shape: &[i64]) -> Tensor {
    assert_eq!(data.len() as i64, shape.iter().product::<i64>());
    Tensor { data: data.as_mut_ptr().cast(), shape: shape.as_ptr(), stride: null(), rank: shape.len() as c_int, dtype: F32,
             device: 0, stream: null_mut() }
}

fn call(kernel: &KernelDesc, operands: &[&Tensor], scalars: &[Scalar]) -> Result<(), &'static str> {
    let operands: Vec<*const Tensor> = operands.iter().map(|operand| *operand as *const Tensor).collect();
    unsafe {
        if umbra_call(kernel, operands.as_ptr(), scalars.as_ptr(), 0) == 0 { Ok(()) } else { Err(text(umbra_error_message())) }
    }
}

fn main() {
    let kernels = kernels();
    for kernel in &kernels {
        println!("{}", describe(kernel));
    }
    let bias_swish = kernels.iter().find(|kernel| unsafe { text(kernel.name) } == "bias_swish").expect("no kernel bias_swish");
    let (mut x, mut bias, mut y) = ([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [0.5, 0.25, 0.0], [0.0; 6]);
    let (matrix, vector) = ([2, 3], [3]);
    let (tx, ty) = (dense(&mut x, &matrix), dense(&mut y, &matrix));
    call(bias_swish, &[&tx, &dense(&mut bias, &vector), &ty], &[Scalar { f32: 2.0 }]).expect("bias_swish");
    for k in 0..6 {
        let v = f64::from(x[k]) + f64::from(bias[k % 3]);
        assert!((f64::from(y[k]) - v / (1.0 + (-2.0 * v).exp())).abs() < 1e-6, "y[{}] is {}", k, y[k]);
    }
    let error = call(bias_swish, &[&tx, &dense(&mut bias[..2], &[2]), &ty], &[Scalar { f32: 2.0 }]).expect_err("a short bias was taken");
    println!("{}", error);
    println!("Rust host: done with {}", unsafe { text(umbra_kernel_target(*bias_swish)) });
}
