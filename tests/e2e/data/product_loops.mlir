// Loops over memrefs, some of which compute products of matrices.
// i, k, j; unknown sizes.
func.func @ikj(%A: memref<?x?xf32>, %B: memref<?x?xf32>, %C: memref<?x?xf32>) attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = memref.dim %A, %c0 : memref<?x?xf32>
  %k = memref.dim %A, %c1 : memref<?x?xf32>
  %n = memref.dim %B, %c1 : memref<?x?xf32>
  scf.for %i = %c0 to %m step %c1 {
    scf.for %l = %c0 to %k step %c1 {
      scf.for %j = %c0 to %n step %c1 {
        %a = memref.load %A[%i, %l] : memref<?x?xf32>
        %b = memref.load %B[%l, %j] : memref<?x?xf32>
        %c = memref.load %C[%i, %j] : memref<?x?xf32>
        %p = arith.mulf %b, %a : f32
        %s = arith.addf %p, %c : f32
        memref.store %s, %C[%i, %j] : memref<?x?xf32>
      }
    }
  }
  return
}
// Carried, from a number.
func.func @carried(%A: memref<70x50xf32>, %B: memref<50x90xf32>, %C: memref<70x90xf32>) attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = arith.constant 70 : index
  %k = arith.constant 50 : index
  %n = arith.constant 90 : index
  %z = arith.constant 2.0 : f32
  scf.for %i = %c0 to %m step %c1 {
    scf.for %j = %c0 to %n step %c1 {
      %r = scf.for %l = %c0 to %k step %c1 iter_args(%acc = %z) -> f32 {
        %a = memref.load %A[%i, %l] : memref<70x50xf32>
        %b = memref.load %B[%l, %j] : memref<50x90xf32>
        %p = arith.mulf %a, %b : f32
        %s = arith.addf %acc, %p : f32
        scf.yield %s : f32
      }
      memref.store %r, %C[%i, %j] : memref<70x90xf32>
    }
  }
  return
}
// Transposed, of a batch, parts, cleared before.
func.func @parts(%A: memref<4x50x70xf32>, %B: memref<4x90x50xf32>, %C: memref<4x70x90xf32>) attributes {llvm.emit_c_interface} {
  %z = arith.constant 0.0 : f32
  affine.for %b = 1 to 4 {
    affine.for %i = 3 to 66 {
      affine.for %j = 0 to 80 {
        affine.store %z, %C[%b, %i, %j] : memref<4x70x90xf32>
        affine.for %l = 5 to 50 {
          %x = affine.load %A[%b, %l, %i] : memref<4x50x70xf32>
          %y = affine.load %B[%b, %j, %l] : memref<4x90x50xf32>
          %c = affine.load %C[%b, %i, %j] : memref<4x70x90xf32>
          %p = arith.mulf %x, %y : f32
          %s = arith.addf %c, %p : f32
          affine.store %s, %C[%b, %i, %j] : memref<4x70x90xf32>
        }
      }
    }
  }
  return
}
// One of a batch, by an argument; f16 to f32; and another loop, which stays one.
func.func @one(%A: memref<4x70x50xf16>, %B: memref<50x90xf16>, %C: memref<70x90xf32>, %which: index) attributes {llvm.emit_c_interface} {
  affine.for %i = 0 to 70 {
    affine.for %j = 0 to 90 {
      affine.for %l = 0 to 50 {
        %x = affine.load %A[symbol(%which), %i, %l] : memref<4x70x50xf16>
        %y = affine.load %B[%l, %j] : memref<50x90xf16>
        %c = affine.load %C[%i, %j] : memref<70x90xf32>
        %xw = arith.extf %x : f16 to f32
        %yw = arith.extf %y : f16 to f32
        %p = arith.mulf %xw, %yw : f32
        %s = arith.addf %c, %p : f32
        affine.store %s, %C[%i, %j] : memref<70x90xf32>
      }
    }
  }
  %half = arith.constant 0.5 : f32
  affine.for %i = 0 to 70 {
    affine.for %j = 0 to 90 {
      %c = affine.load %C[%i, %j] : memref<70x90xf32>
      %h = arith.mulf %c, %half : f32
      affine.store %h, %C[%i, %j] : memref<70x90xf32>
    }
  }
  return
}
// A vector; integers.
func.func @vector(%A: memref<70x50xi32>, %x: memref<50xi32>, %y: memref<70xi32>) attributes {llvm.emit_c_interface} {
  affine.for %i = 0 to 70 {
    affine.for %l = 0 to 50 {
      %a = affine.load %A[%i, %l] : memref<70x50xi32>
      %b = affine.load %x[%l] : memref<50xi32>
      %c = affine.load %y[%i] : memref<70xi32>
      %p = arith.muli %a, %b : i32
      %s = arith.addi %c, %p : i32
      affine.store %s, %y[%i] : memref<70xi32>
    }
  }
  return
}
// No contractions: a triangle; a square of which the result is a part; a diagonal.
func.func @triangle(%A: memref<70x70xf32>, %B: memref<70x70xf32>, %C: memref<70x70xf32>) attributes {llvm.emit_c_interface} {
  affine.for %i = 0 to 70 {
    affine.for %j = 0 to 70 {
      affine.for %l = 0 to affine_map<(d0) -> (d0)>(%i) {
        %a = affine.load %A[%i, %l] : memref<70x70xf32>
        %b = affine.load %B[%l, %j] : memref<70x70xf32>
        %c = affine.load %C[%i, %j] : memref<70x70xf32>
        %p = arith.mulf %a, %b : f32
        %s = arith.addf %c, %p : f32
        affine.store %s, %C[%i, %j] : memref<70x70xf32>
      }
    }
  }
  return
}
func.func @power(%A: memref<20x20xf32>) attributes {llvm.emit_c_interface} {
  affine.for %i = 0 to 20 {
    affine.for %j = 0 to 20 {
      affine.for %l = 0 to 20 {
        %a = affine.load %A[%i, %l] : memref<20x20xf32>
        %b = affine.load %A[%l, %j] : memref<20x20xf32>
        %c = affine.load %A[%i, %j] : memref<20x20xf32>
        %p = arith.mulf %a, %b : f32
        %s = arith.addf %c, %p : f32
        affine.store %s, %A[%i, %j] : memref<20x20xf32>
      }
    }
  }
  return
}
func.func @diagonal(%A: memref<70x70xf32>, %B: memref<70x70xf32>, %C: memref<70x70xf32>) attributes {llvm.emit_c_interface} {
  affine.for %i = 0 to 70 {
    affine.for %j = 0 to 70 {
      affine.for %l = 0 to 70 {
        %a = affine.load %A[%i, %l] : memref<70x70xf32>
        %b = affine.load %B[%l, %l] : memref<70x70xf32>
        %c = affine.load %C[%i, %j] : memref<70x70xf32>
        %p = arith.mulf %a, %b : f32
        %s = arith.addf %c, %p : f32
        affine.store %s, %C[%i, %j] : memref<70x70xf32>
      }
    }
  }
  return
}
