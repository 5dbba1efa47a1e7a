// Products with sparse matrices by the operations of the gpu dialect, which call cuSPARSE on a GPU.
func.func @spmv_coo(%rows: index, %columns: index, %count: index, %rows_of: memref<?xi64>,
    %indices: memref<?xi64>, %values: memref<?xf64>, %x: memref<?xf64>, %y: memref<?xf64>)
    attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %t = gpu.wait async
  %n_rows_of = memref.dim %rows_of, %c0 : memref<?xi64>
  %d_rows_of, %t1 = gpu.alloc async [%t] (%n_rows_of) : memref<?xi64>
  %t2 = gpu.memcpy async [%t1] %d_rows_of, %rows_of : memref<?xi64>, memref<?xi64>
  %n_indices = memref.dim %indices, %c0 : memref<?xi64>
  %d_indices, %t3 = gpu.alloc async [%t2] (%n_indices) : memref<?xi64>
  %t4 = gpu.memcpy async [%t3] %d_indices, %indices : memref<?xi64>, memref<?xi64>
  %n_values = memref.dim %values, %c0 : memref<?xf64>
  %d_values, %t5 = gpu.alloc async [%t4] (%n_values) : memref<?xf64>
  %t6 = gpu.memcpy async [%t5] %d_values, %values : memref<?xf64>, memref<?xf64>
  %n_x = memref.dim %x, %c0 : memref<?xf64>
  %d_x, %t7 = gpu.alloc async [%t6] (%n_x) : memref<?xf64>
  %t8 = gpu.memcpy async [%t7] %d_x, %x : memref<?xf64>, memref<?xf64>
  %n_y = memref.dim %y, %c0 : memref<?xf64>
  %d_y, %t9 = gpu.alloc async [%t8] (%n_y) : memref<?xf64>
  %t10 = gpu.memcpy async [%t9] %d_y, %y : memref<?xf64>, memref<?xf64>
  %a, %t11 = gpu.create_coo async [%t10] %rows, %columns, %count, %d_rows_of, %d_indices,
    %d_values
    : memref<?xi64>, memref<?xi64>, memref<?xf64>
  %v_x, %t12 = gpu.create_dn_tensor async [%t11] %d_x, %n_x : index into memref<?xf64>
  %v_y, %t13 = gpu.create_dn_tensor async [%t12] %d_y, %n_y : index into memref<?xf64>
  %size, %t14 = gpu.spmv_buffer_size async [%t13] %a, %v_x, %v_y into f64
  %buffer, %t15 = gpu.alloc async [%t14] (%size) : memref<?xi8>
  %t16 = gpu.spmv async [%t15] %a, %v_x, %v_y, %buffer : memref<?xi8> into f64
  %t17 = gpu.destroy_sp_mat async [%t16] %a
  %t18 = gpu.destroy_dn_tensor async [%t17] %v_x
  %t19 = gpu.destroy_dn_tensor async [%t18] %v_y
  %t20 = gpu.dealloc async [%t19] %buffer : memref<?xi8>
  %t21 = gpu.memcpy async [%t20] %y, %d_y : memref<?xf64>, memref<?xf64>
  %t22 = gpu.dealloc async [%t21] %d_rows_of : memref<?xi64>
  %t23 = gpu.dealloc async [%t22] %d_indices : memref<?xi64>
  %t24 = gpu.dealloc async [%t23] %d_values : memref<?xf64>
  %t25 = gpu.dealloc async [%t24] %d_x : memref<?xf64>
  %t26 = gpu.dealloc async [%t25] %d_y : memref<?xf64>
  gpu.wait [%t26]
  return
}
func.func @spmv_csr(%rows: index, %columns: index, %count: index, %positions: memref<?xi32>,
    %indices: memref<?xi32>, %values: memref<?xcomplex<f32>>, %x: memref<?xcomplex<f32>>,
    %y: memref<?xcomplex<f32>>)
    attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %t = gpu.wait async
  %n_positions = memref.dim %positions, %c0 : memref<?xi32>
  %d_positions, %t1 = gpu.alloc async [%t] (%n_positions) : memref<?xi32>
  %t2 = gpu.memcpy async [%t1] %d_positions, %positions : memref<?xi32>, memref<?xi32>
  %n_indices = memref.dim %indices, %c0 : memref<?xi32>
  %d_indices, %t3 = gpu.alloc async [%t2] (%n_indices) : memref<?xi32>
  %t4 = gpu.memcpy async [%t3] %d_indices, %indices : memref<?xi32>, memref<?xi32>
  %n_values = memref.dim %values, %c0 : memref<?xcomplex<f32>>
  %d_values, %t5 = gpu.alloc async [%t4] (%n_values) : memref<?xcomplex<f32>>
  %t6 = gpu.memcpy async [%t5] %d_values, %values : memref<?xcomplex<f32>>, memref<?xcomplex<f32>>
  %n_x = memref.dim %x, %c0 : memref<?xcomplex<f32>>
  %d_x, %t7 = gpu.alloc async [%t6] (%n_x) : memref<?xcomplex<f32>>
  %t8 = gpu.memcpy async [%t7] %d_x, %x : memref<?xcomplex<f32>>, memref<?xcomplex<f32>>
  %n_y = memref.dim %y, %c0 : memref<?xcomplex<f32>>
  %d_y, %t9 = gpu.alloc async [%t8] (%n_y) : memref<?xcomplex<f32>>
  %t10 = gpu.memcpy async [%t9] %d_y, %y : memref<?xcomplex<f32>>, memref<?xcomplex<f32>>
  %a, %t11 = gpu.create_csr async [%t10] %rows, %columns, %count, %d_positions, %d_indices,
    %d_values
    : memref<?xi32>, memref<?xi32>, memref<?xcomplex<f32>>
  %v_x, %t12 = gpu.create_dn_tensor async [%t11] %d_x, %n_x : index into memref<?xcomplex<f32>>
  %v_y, %t13 = gpu.create_dn_tensor async [%t12] %d_y, %n_y : index into memref<?xcomplex<f32>>
  %size, %t14 = gpu.spmv_buffer_size async [%t13] %a{CONJUGATE_TRANSPOSE}, %v_x, %v_y into complex<f32>
  %buffer, %t15 = gpu.alloc async [%t14] (%size) : memref<?xi8>
  %t16 = gpu.spmv async [%t15] %a{CONJUGATE_TRANSPOSE}, %v_x, %v_y, %buffer
    : memref<?xi8> into complex<f32>
  %t17 = gpu.destroy_sp_mat async [%t16] %a
  %t18 = gpu.destroy_dn_tensor async [%t17] %v_x
  %t19 = gpu.destroy_dn_tensor async [%t18] %v_y
  %t20 = gpu.dealloc async [%t19] %buffer : memref<?xi8>
  %t21 = gpu.memcpy async [%t20] %y, %d_y : memref<?xcomplex<f32>>, memref<?xcomplex<f32>>
  %t22 = gpu.dealloc async [%t21] %d_positions : memref<?xi32>
  %t23 = gpu.dealloc async [%t22] %d_indices : memref<?xi32>
  %t24 = gpu.dealloc async [%t23] %d_values : memref<?xcomplex<f32>>
  %t25 = gpu.dealloc async [%t24] %d_x : memref<?xcomplex<f32>>
  %t26 = gpu.dealloc async [%t25] %d_y : memref<?xcomplex<f32>>
  gpu.wait [%t26]
  return
}
func.func @spmm_csc(%rows: index, %columns: index, %count: index, %n: index,
    %positions: memref<?xindex>, %indices: memref<?xindex>, %values: memref<?xf32>,
    %b: memref<?xf32>, %c: memref<?xf32>)
    attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %t = gpu.wait async
  %n_positions = memref.dim %positions, %c0 : memref<?xindex>
  %d_positions, %t1 = gpu.alloc async [%t] (%n_positions) : memref<?xindex>
  %t2 = gpu.memcpy async [%t1] %d_positions, %positions : memref<?xindex>, memref<?xindex>
  %n_indices = memref.dim %indices, %c0 : memref<?xindex>
  %d_indices, %t3 = gpu.alloc async [%t2] (%n_indices) : memref<?xindex>
  %t4 = gpu.memcpy async [%t3] %d_indices, %indices : memref<?xindex>, memref<?xindex>
  %n_values = memref.dim %values, %c0 : memref<?xf32>
  %d_values, %t5 = gpu.alloc async [%t4] (%n_values) : memref<?xf32>
  %t6 = gpu.memcpy async [%t5] %d_values, %values : memref<?xf32>, memref<?xf32>
  %n_b = memref.dim %b, %c0 : memref<?xf32>
  %d_b, %t7 = gpu.alloc async [%t6] (%n_b) : memref<?xf32>
  %t8 = gpu.memcpy async [%t7] %d_b, %b : memref<?xf32>, memref<?xf32>
  %n_c = memref.dim %c, %c0 : memref<?xf32>
  %d_c, %t9 = gpu.alloc async [%t8] (%n_c) : memref<?xf32>
  %t10 = gpu.memcpy async [%t9] %d_c, %c : memref<?xf32>, memref<?xf32>
  %a, %t11 = gpu.create_csc async [%t10] %rows, %columns, %count, %d_positions, %d_indices,
    %d_values
    : memref<?xindex>, memref<?xindex>, memref<?xf32>
  %m_b, %t12 = gpu.create_dn_tensor async [%t11] %d_b, %columns, %n
    : index, index into memref<?xf32>
  %m_c, %t13 = gpu.create_dn_tensor async [%t12] %d_c, %rows, %n : index, index into memref<?xf32>
  %size, %t14 = gpu.spmm_buffer_size async [%t13] %a, %m_b, %m_c : index into f32
  %buffer, %t15 = gpu.alloc async [%t14] (%size) : memref<?xi8>
  %t16 = gpu.spmm async [%t15] %a, %m_b, %m_c, %buffer : memref<?xi8> into f32
  %t17 = gpu.destroy_sp_mat async [%t16] %a
  %t18 = gpu.destroy_dn_tensor async [%t17] %m_b
  %t19 = gpu.destroy_dn_tensor async [%t18] %m_c
  %t20 = gpu.dealloc async [%t19] %buffer : memref<?xi8>
  %t21 = gpu.memcpy async [%t20] %c, %d_c : memref<?xf32>, memref<?xf32>
  %t22 = gpu.dealloc async [%t21] %d_positions : memref<?xindex>
  %t23 = gpu.dealloc async [%t22] %d_indices : memref<?xindex>
  %t24 = gpu.dealloc async [%t23] %d_values : memref<?xf32>
  %t25 = gpu.dealloc async [%t24] %d_b : memref<?xf32>
  %t26 = gpu.dealloc async [%t25] %d_c : memref<?xf32>
  gpu.wait [%t26]
  return
}
func.func @spmm_csr(%rows: index, %columns: index, %count: index, %n: index,
    %positions: memref<?xi32>, %indices: memref<?xi32>, %values: memref<?xf16>,
    %b: memref<?xf16>, %c: memref<?xf16>)
    attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %t = gpu.wait async
  %n_positions = memref.dim %positions, %c0 : memref<?xi32>
  %d_positions, %t1 = gpu.alloc async [%t] (%n_positions) : memref<?xi32>
  %t2 = gpu.memcpy async [%t1] %d_positions, %positions : memref<?xi32>, memref<?xi32>
  %n_indices = memref.dim %indices, %c0 : memref<?xi32>
  %d_indices, %t3 = gpu.alloc async [%t2] (%n_indices) : memref<?xi32>
  %t4 = gpu.memcpy async [%t3] %d_indices, %indices : memref<?xi32>, memref<?xi32>
  %n_values = memref.dim %values, %c0 : memref<?xf16>
  %d_values, %t5 = gpu.alloc async [%t4] (%n_values) : memref<?xf16>
  %t6 = gpu.memcpy async [%t5] %d_values, %values : memref<?xf16>, memref<?xf16>
  %n_b = memref.dim %b, %c0 : memref<?xf16>
  %d_b, %t7 = gpu.alloc async [%t6] (%n_b) : memref<?xf16>
  %t8 = gpu.memcpy async [%t7] %d_b, %b : memref<?xf16>, memref<?xf16>
  %n_c = memref.dim %c, %c0 : memref<?xf16>
  %d_c, %t9 = gpu.alloc async [%t8] (%n_c) : memref<?xf16>
  %t10 = gpu.memcpy async [%t9] %d_c, %c : memref<?xf16>, memref<?xf16>
  %a, %t11 = gpu.create_csr async [%t10] %rows, %columns, %count, %d_positions, %d_indices,
    %d_values
    : memref<?xi32>, memref<?xi32>, memref<?xf16>
  %m_b, %t12 = gpu.create_dn_tensor async [%t11] %d_b, %columns, %n
    : index, index into memref<?xf16>
  %m_c, %t13 = gpu.create_dn_tensor async [%t12] %d_c, %rows, %n : index, index into memref<?xf16>
  %size, %t14 = gpu.spmm_buffer_size async [%t13] %a, %m_b, %m_c : index into f32
  %buffer, %t15 = gpu.alloc async [%t14] (%size) : memref<?xi8>
  %t16 = gpu.spmm async [%t15] %a, %m_b, %m_c, %buffer : memref<?xi8> into f32
  %t17 = gpu.destroy_sp_mat async [%t16] %a
  %t18 = gpu.destroy_dn_tensor async [%t17] %m_b
  %t19 = gpu.destroy_dn_tensor async [%t18] %m_c
  %t20 = gpu.dealloc async [%t19] %buffer : memref<?xi8>
  %t21 = gpu.memcpy async [%t20] %c, %d_c : memref<?xf16>, memref<?xf16>
  %t22 = gpu.dealloc async [%t21] %d_positions : memref<?xi32>
  %t23 = gpu.dealloc async [%t22] %d_indices : memref<?xi32>
  %t24 = gpu.dealloc async [%t23] %d_values : memref<?xf16>
  %t25 = gpu.dealloc async [%t24] %d_b : memref<?xf16>
  %t26 = gpu.dealloc async [%t25] %d_c : memref<?xf16>
  gpu.wait [%t26]
  return
}
func.func @sddmm_bsr(%rows: index, %columns: index, %count: index, %height: index, %width: index,
    %n: index, %positions: memref<?xi32>, %indices: memref<?xi32>, %values: memref<?xf32>,
    %b: memref<?xf32>, %c: memref<?xf32>)
    attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %all_rows = arith.muli %rows, %height : index
  %all_columns = arith.muli %columns, %width : index
  %t = gpu.wait async
  %n_positions = memref.dim %positions, %c0 : memref<?xi32>
  %d_positions, %t1 = gpu.alloc async [%t] (%n_positions) : memref<?xi32>
  %t2 = gpu.memcpy async [%t1] %d_positions, %positions : memref<?xi32>, memref<?xi32>
  %n_indices = memref.dim %indices, %c0 : memref<?xi32>
  %d_indices, %t3 = gpu.alloc async [%t2] (%n_indices) : memref<?xi32>
  %t4 = gpu.memcpy async [%t3] %d_indices, %indices : memref<?xi32>, memref<?xi32>
  %n_values = memref.dim %values, %c0 : memref<?xf32>
  %d_values, %t5 = gpu.alloc async [%t4] (%n_values) : memref<?xf32>
  %t6 = gpu.memcpy async [%t5] %d_values, %values : memref<?xf32>, memref<?xf32>
  %n_b = memref.dim %b, %c0 : memref<?xf32>
  %d_b, %t7 = gpu.alloc async [%t6] (%n_b) : memref<?xf32>
  %t8 = gpu.memcpy async [%t7] %d_b, %b : memref<?xf32>, memref<?xf32>
  %n_c = memref.dim %c, %c0 : memref<?xf32>
  %d_c, %t9 = gpu.alloc async [%t8] (%n_c) : memref<?xf32>
  %t10 = gpu.memcpy async [%t9] %d_c, %c : memref<?xf32>, memref<?xf32>
  %a, %t11 = gpu.create_bsr async [%t10] %rows, %columns, %count, %height, %width,
    %d_positions, %d_indices, %d_values
    : memref<?xi32>, memref<?xi32>, memref<?xf32>
  %m_b, %t12 = gpu.create_dn_tensor async [%t11] %d_b, %all_rows, %n
    : index, index into memref<?xf32>
  %m_c, %t13 = gpu.create_dn_tensor async [%t12] %d_c, %n, %all_columns
    : index, index into memref<?xf32>
  %size, %t14 = gpu.sddmm_buffer_size async [%t13] %m_b, %m_c, %a into f32
  %buffer, %t15 = gpu.alloc async [%t14] (%size) : memref<?xi8>
  %t16 = gpu.sddmm async [%t15] %m_b, %m_c, %a, %buffer : memref<?xi8> into f32
  %t17 = gpu.destroy_sp_mat async [%t16] %a
  %t18 = gpu.destroy_dn_tensor async [%t17] %m_b
  %t19 = gpu.destroy_dn_tensor async [%t18] %m_c
  %t20 = gpu.dealloc async [%t19] %buffer : memref<?xi8>
  %t21 = gpu.memcpy async [%t20] %values, %d_values : memref<?xf32>, memref<?xf32>
  %t22 = gpu.dealloc async [%t21] %d_positions : memref<?xi32>
  %t23 = gpu.dealloc async [%t22] %d_indices : memref<?xi32>
  %t24 = gpu.dealloc async [%t23] %d_values : memref<?xf32>
  %t25 = gpu.dealloc async [%t24] %d_b : memref<?xf32>
  %t26 = gpu.dealloc async [%t25] %d_c : memref<?xf32>
  gpu.wait [%t26]
  return
}
func.func @spgemm(%n: index, %count: index, %p: memref<?xi32>, %i: memref<?xi32>, %v: memref<?xf32>,
    %cp: memref<?xi32>, %ci: memref<?xi32>, %cv: memref<?xf32>) -> index
    attributes {llvm.emit_c_interface} {
  %none = memref.alloc() : memref<0xi8>
  %c0 = arith.constant 0 : index
  %t = gpu.wait async
  %a, %t1 = gpu.create_csr async [%t] %n, %n, %count, %p, %i, %v
    : memref<?xi32>, memref<?xi32>, memref<?xf32>
  %c, %t2 = gpu.create_csr async [%t1] %n, %n, %c0, %cp, %ci, %cv
    : memref<?xi32>, memref<?xi32>, memref<?xf32>
  %d, %t3 = gpu.spgemm_create_descr async [%t2]
  %s1, %t4 = gpu.spgemm_work_estimation_or_compute async [%t3] {WORK_ESTIMATION} %a, %a, %c, %d,
    %c0, %none : f32 into memref<0xi8>
  %s2, %t5 = gpu.spgemm_work_estimation_or_compute async [%t4] {COMPUTE} %a, %a, %c, %d,
    %c0, %none : f32 into memref<0xi8>
  %rows, %columns, %nnz, %t6 = gpu.spmat_get_size async [%t5] %c
  %t7 = gpu.set_csr_pointers async [%t6] %c, %cp, %ci, %cv
    : memref<?xi32>, memref<?xi32>, memref<?xf32>
  %t8 = gpu.spgemm_copy async [%t7] %a, %a, %c, %d : f32
  %t9 = gpu.spgemm_destroy_descr async [%t8] %d
  %t10 = gpu.destroy_sp_mat async [%t9] %a
  %t11 = gpu.destroy_sp_mat async [%t10] %c
  gpu.wait [%t11]
  return %nnz : index
}
func.func @two_of_four(%a: memref<2x8xf16>, %b: memref<8x2xf16>, %c: memref<2x2xf16>)
    attributes {llvm.emit_c_interface} {
  %c2 = arith.constant 2 : index
  %c8 = arith.constant 8 : index
  %t = gpu.wait async
  %sa, %t1 = gpu.create_2to4_spmat async [%t] {PRUNE_AND_CHECK} %c2, %c8, %a : memref<2x8xf16>
  %db, %t2 = gpu.create_dn_tensor async [%t1] %b, %c8, %c2 : index, index into memref<8x2xf16>
  %dc, %t3 = gpu.create_dn_tensor async [%t2] %c, %c2, %c2 : index, index into memref<2x2xf16>
  %s0, %s1, %s2, %t4 = gpu.spmm_buffer_size async [%t3] %sa, %db, %dc
    : index, index, index into f16
  %m0, %t5 = gpu.alloc async [%t4] (%s0) : memref<?xf16>
  %m1, %t6 = gpu.alloc async [%t5] (%s1) : memref<?xf16>
  %m2, %t7 = gpu.alloc async [%t6] (%s2) : memref<?xf16>
  %t8 = gpu.spmm async [%t7] %sa, %db, %dc, %m0, %m1, %m2
    : memref<?xf16>, memref<?xf16>, memref<?xf16> into f16
  %t9 = gpu.destroy_sp_mat async [%t8] %sa
  gpu.wait [%t9]
  return
}
func.func @unpruned(%a: memref<2x8xf16>, %b: memref<8x2xf16>, %c: memref<2x2xf16>)
    attributes {llvm.emit_c_interface} {
  %c2 = arith.constant 2 : index
  %c8 = arith.constant 8 : index
  %t = gpu.wait async
  %sa, %t1 = gpu.create_2to4_spmat async [%t] {NONE} %c2, %c8, %a : memref<2x8xf16>
  %db, %t2 = gpu.create_dn_tensor async [%t1] %b, %c8, %c2 : index, index into memref<8x2xf16>
  %dc, %t3 = gpu.create_dn_tensor async [%t2] %c, %c2, %c2 : index, index into memref<2x2xf16>
  %s0, %s1, %s2, %t4 = gpu.spmm_buffer_size async [%t3] %sa, %db, %dc
    : index, index, index into f16
  %m0, %t5 = gpu.alloc async [%t4] (%s0) : memref<?xf16>
  %m1, %t6 = gpu.alloc async [%t5] (%s1) : memref<?xf16>
  %m2, %t7 = gpu.alloc async [%t6] (%s2) : memref<?xf16>
  %t8 = gpu.spmm async [%t7] %sa, %db, %dc, %m0, %m1, %m2
    : memref<?xf16>, memref<?xf16>, memref<?xf16> into f16
  %t9 = gpu.destroy_sp_mat async [%t8] %sa
  gpu.wait [%t9]
  return
}
