// What a compiler for a small language makes of
//
//   var a = [[1, 2, 3], [4, 5, 6]];
//   var b<2, 3> = [1, 2, 3, 4, 5, 6];
//   print(transpose(a) * transpose(b));
//
// A program of its own: its main allocates tensors, fills them with constants, runs loops that were
// written without a thought of a GPU, and prints the result with the C library's printf.
llvm.mlir.global internal constant @number("%f \00")
llvm.mlir.global internal constant @new_line("\0A\00")
llvm.func @printf(!llvm.ptr, ...) -> i32

func.func @main() {
  %one = arith.constant 1.0 : f64
  %two = arith.constant 2.0 : f64
  %three = arith.constant 3.0 : f64
  %four = arith.constant 4.0 : f64
  %five = arith.constant 5.0 : f64
  %six = arith.constant 6.0 : f64
  %a = memref.alloc() : memref<2x3xf64>
  affine.store %one, %a[0, 0] : memref<2x3xf64>
  affine.store %two, %a[0, 1] : memref<2x3xf64>
  affine.store %three, %a[0, 2] : memref<2x3xf64>
  affine.store %four, %a[1, 0] : memref<2x3xf64>
  affine.store %five, %a[1, 1] : memref<2x3xf64>
  affine.store %six, %a[1, 2] : memref<2x3xf64>
  %b = memref.alloc() : memref<2x3xf64>
  affine.store %one, %b[0, 0] : memref<2x3xf64>
  affine.store %two, %b[0, 1] : memref<2x3xf64>
  affine.store %three, %b[0, 2] : memref<2x3xf64>
  affine.store %four, %b[1, 0] : memref<2x3xf64>
  affine.store %five, %b[1, 1] : memref<2x3xf64>
  affine.store %six, %b[1, 2] : memref<2x3xf64>

  %a_transposed = memref.alloc() : memref<3x2xf64>
  affine.for %i = 0 to 3 {
    affine.for %j = 0 to 2 {
      %value = affine.load %a[%j, %i] : memref<2x3xf64>
      affine.store %value, %a_transposed[%i, %j] : memref<3x2xf64>
    }
  }
  %b_transposed = memref.alloc() : memref<3x2xf64>
  affine.for %i = 0 to 3 {
    affine.for %j = 0 to 2 {
      %value = affine.load %b[%j, %i] : memref<2x3xf64>
      affine.store %value, %b_transposed[%i, %j] : memref<3x2xf64>
    }
  }
  %product = memref.alloc() : memref<3x2xf64>
  affine.for %i = 0 to 3 {
    affine.for %j = 0 to 2 {
      %x = affine.load %a_transposed[%i, %j] : memref<3x2xf64>
      %y = affine.load %b_transposed[%i, %j] : memref<3x2xf64>
      %xy = arith.mulf %x, %y : f64
      affine.store %xy, %product[%i, %j] : memref<3x2xf64>
    }
  }

  %number = llvm.mlir.addressof @number : !llvm.ptr
  %new_line = llvm.mlir.addressof @new_line : !llvm.ptr
  affine.for %i = 0 to 3 {
    affine.for %j = 0 to 2 {
      %value = affine.load %product[%i, %j] : memref<3x2xf64>
      %0 = llvm.call @printf(%number, %value) vararg(!llvm.func<i32 (ptr, ...)>)
        : (!llvm.ptr, f64) -> i32
    }
    %1 = llvm.call @printf(%new_line) vararg(!llvm.func<i32 (ptr, ...)>) : (!llvm.ptr) -> i32
  }
  memref.dealloc %a : memref<2x3xf64>
  memref.dealloc %b : memref<2x3xf64>
  memref.dealloc %a_transposed : memref<3x2xf64>
  memref.dealloc %b_transposed : memref<3x2xf64>
  memref.dealloc %product : memref<3x2xf64>
  return
}
