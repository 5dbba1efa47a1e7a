// Host code reads what a kernel was to write behind another kernel that fails.
func.func private @check(%x: memref<8xindex>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.parallel (%i) = (%c0) to (%c8) step (%c1) {
    %v = memref.load %x[%i] : memref<8xindex>
    %is_good = arith.cmpi ult, %v, %c8 : index
    cf.assert %is_good, "no index"
    memref.store %v, %x[%i] : memref<8xindex>
  }
  return
}
func.func @element(%x: memref<8xindex>) attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %big = arith.constant 100000000000 : index
  %places = memref.alloc() : memref<8xindex>
  %table = memref.alloc() : memref<8xindex>
  scf.for %i = %c0 to %c8 step %c1 {
    memref.store %i, %table[%i] : memref<8xindex>
    memref.store %big, %places[%i] : memref<8xindex>
  }
  func.call @check(%x) : (memref<8xindex>) -> ()
  scf.parallel (%i) = (%c0) to (%c8) step (%c1) {
    %v = memref.load %x[%i] : memref<8xindex>
    memref.store %v, %places[%i] : memref<8xindex>
  }
  %place = memref.load %places[%c0] : memref<8xindex>
  %found = memref.load %table[%place] : memref<8xindex>
  memref.store %found, %x[%c0] : memref<8xindex>
  memref.dealloc %places : memref<8xindex>
  memref.dealloc %table : memref<8xindex>
  return
}
func.func @loop(%x: memref<8xindex>) attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  func.call @check(%x) : (memref<8xindex>) -> ()
  %count = memref.alloc() : memref<8xindex>
  scf.for %i = %c0 to %c8 step %c1 {
    memref.store %c0, %count[%i] : memref<8xindex>
  }
  scf.while : () -> () {
    scf.parallel (%i) = (%c0) to (%c8) step (%c1) {
      %v = memref.load %count[%i] : memref<8xindex>
      %more = arith.addi %v, %c1 : index
      memref.store %more, %count[%i] : memref<8xindex>
    }
    %v = memref.load %count[%c0] : memref<8xindex>
    %goes_on = arith.cmpi ult, %v, %c8 : index
    scf.condition(%goes_on)
  } do {
    scf.yield
  }
  memref.dealloc %count : memref<8xindex>
  return
}
