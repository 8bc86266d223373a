#!/usr/bin/env python3
"""Runs the checks of tools/check-cuda on output of CUDA's tools: each check must find its fault, and let a sound kernel pass."""

import importlib.machinery
import importlib.util
import os
import sys
import unittest
import unittest.mock

sys.dont_write_bytecode = True
PATH = os.path.join(os.environ["TWILL_SOURCE_DIR"], "tools", "check-cuda")
LOADER = importlib.machinery.SourceFileLoader("check_cuda", PATH)
check_cuda = importlib.util.module_from_spec(importlib.util.spec_from_loader("check_cuda", LOADER))
LOADER.exec_module(check_cuda)

LOG = """ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '_ZN5twill5soundEPf' for 'sm_80'
ptxas info    : Function properties for _ZN5twill5soundEPf
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 32 registers, used 0 barriers, 360 bytes cmem[0]
ptxas info    : Compiling entry function '_ZN5twill5spillEPf' for 'sm_80'
ptxas info    : Function properties for _ZN5twill5spillEPf
    64 bytes stack frame, 48 bytes spill stores, 72 bytes spill loads
ptxas info    : Used 255 registers, used 0 barriers, 360 bytes cmem[0]
ptxas info    : Compiling entry function '_ZN5twill5emptyEPf' for 'sm_80'
ptxas info    : Function properties for _ZN5twill5emptyEPf
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
"""
USAGE = """
Fatbin elf code:
================
arch = sm_80
code version = [1,7]
host = linux
compile_size = 64bit

Resource usage:
 Common:
  GLOBAL:0
 Function _ZN5twill5soundEPf:
  REG:32 STACK:0 SHARED:1024 LOCAL:0 CONSTANT[0]:360 TEXTURE:0 SURFACE:0 SAMPLER:0
 Function _ZN5twill5spillEPf:
  REG:255 STACK:64 SHARED:0 LOCAL:0 CONSTANT[0]:360 TEXTURE:0 SURFACE:0 SAMPLER:0
 Function _ZN5twill5emptyEPf:
  REG:8 STACK:0 SHARED:0 LOCAL:0 CONSTANT[0]:360 TEXTURE:0 SURFACE:0 SAMPLER:0
"""
SASS = """
	code for sm_80
		Function : _ZN5twill5soundEPf
	.headerflags	@"EF_CUDA_TEXMODE_UNIFIED EF_CUDA_64BIT_ADDRESS EF_CUDA_SM80 EF_CUDA_VIRTUAL_SM(EF_CUDA_SM80)"
        /*0000*/                   MOV R1, c[0x0][0x28] ;                     /* 0x00000a0000017a02 */
        /*0040*/                   STS [R4], R2 ;                             /* 0x0000000204007388 */
        /*0050*/              @!P0 STG.E [R2.64], R5 ;                        /* 0x0000000502007986 */
		Function : _ZN5twill5spillEPf
        /*0000*/                   STL [R1], R2 ;                             /* 0x0000000201007387 */
        /*0010*/                   RED.E.ADD.STRONG.GPU [R2.64], R5 ;         /* 0x000000050200798e */
		Function : _ZN5twill5emptyEPf
        /*0000*/                   STL [R1], R2 ;                             /* 0x0000000201007387 */
        /*0010*/                   EXIT ;                                     /* 0x000000000000794d */
"""
# A loop inside another. The body of the inner loop has two paths, of which the longer one has more marked instructions, and a
# third that calls a function. A predicated call, which ptxas uses for some jumps, leaves the outer loop.
LOOPS = """
	code for sm_90
		Function : _ZN5twill5loopsILi1EEvPf
        /*0000*/                   MOV R1, c[0x0][0x28] ;
        /*0010*/                   IADD3 R2, R2, 0x1, RZ ;
        /*0020*/                   LDG.E.128 R8, [R2.64] ;
        /*0030*/                   BSSY B0, 0xb0 ;
        /*0040*/              @!P0 BRA 0x80 ;
        /*0050*/                   LDG.E.128 R8, [R2.64] ;
        /*0060*/                   FFMA R4, R8, R9, R4 ;
        /*0070*/                   BSYNC B0 ;
        /*0080*/                   CALL.REL.NOINC 0x150 ;
        /*0090*/                   LDG.E.128 R8, [R2.64] ;
        /*00a0*/                   BSYNC B0 ;
        /*00b0*/               @P2 BRA 0xd0 ;
        /*00c0*/                   FFMA R4, R8, R9, R4 ;
        /*00d0*/               @P1 BRA 0x20 ;
        /*00e0*/                   STG.E [R2.64], R4 ;
        /*00f0*/               @P1 CALL.REL.NOINC 0x110 ;
        /*0100*/                   BRA 0x10 ;
        /*0110*/                   HMMA.16816.F32 R4, R8, R10, R4 ;
        /*0120*/               @P1 BRA 0x110 ;
        /*0130*/              @!P3 EXIT ;
        /*0140*/                   EXIT ;
        /*0150*/                   RET.REL.NODEC R6 0x0 ;
        /*0160*/                   BRA 0x160;
"""


class Gates(unittest.TestCase):
    def setUp(self):
        self.kernels = {k.name: k for k in check_cuda.kernels_of(LOG, USAGE, SASS)}

    def faults(self, name, **changed):
        return " | ".join(check_cuda.faults_of(self.kernels[name]._replace(**changed)))

    def test_a_sound_kernel_passes(self):
        kernel = self.kernels["_ZN5twill5soundEPf"]
        self.assertEqual(kernel._replace(code=[]), check_cuda.Kernel("_ZN5twill5soundEPf", 80, 32, 1024, 0, 1, []))
        self.assertEqual([(one.address, one.always) for one in kernel.code], [(0x0, True), (0x40, True), (0x50, False)])
        self.assertEqual(self.faults("_ZN5twill5soundEPf"), "")

    def test_a_stack_frame_is_a_fault_with_spills_and_without(self):
        self.assertIn("has one of 64 bytes", self.faults("_ZN5twill5spillEPf"))
        self.assertIn("has one of 16 bytes", self.faults("_ZN5twill5soundEPf", stack=16))

    def test_a_kernel_that_stores_nothing_is_a_fault(self):
        self.assertIn("stores nothing", self.faults("_ZN5twill5emptyEPf"))
        self.assertNotIn("stores nothing", self.faults("_ZN5twill5spillEPf"))

    def test_the_store_of_kokkos_does_not_count_as_a_team_s_own(self):
        team = self.kernels["_ZN5twill5soundEPf"]._replace(name="_ZN6Kokkos10TeamPolicyI5twillE")
        self.assertIn("stores nothing", " ".join(check_cuda.faults_of(team)))
        self.assertEqual(check_cuda.faults_of(team._replace(stores=2)), [])

    def test_too_many_registers_or_bytes_of_shared_memory_are_a_fault(self):
        self.assertIn("leave room for 8", self.faults("_ZN5twill5soundEPf", registers=255))
        self.assertEqual(self.faults("_ZN5twill5soundEPf", registers=128), "")
        self.assertIn("leave room for 12", self.faults("_ZN5twill5soundEPf", registers=128, shared=32 * 1024))

    def test_kernels_of_others_are_not_judged(self):
        self.assertEqual(check_cuda.kernels_of(LOG.replace("5twill", "6Kokkos"), USAGE, SASS), [])

    def test_a_kernel_without_machine_code_is_a_fault(self):
        kernels = check_cuda.kernels_of(LOG, "", "")
        self.assertEqual(check_cuda.faults_of(kernels[0]), ["its machine code was not found"])

    def test_a_linked_program_needs_no_driver_and_holds_every_architecture(self):
        needed = " 0x0000000000000001 (NEEDED)             Shared library: [libstdc++.so.6]\n"
        both = USAGE + USAGE.replace("sm_80", "sm_90")
        self.assertEqual(check_cuda.faults_of_program(needed, both, [80, 90]), [])
        self.assertIn("needs libcuda.so.1", check_cuda.faults_of_program(needed.replace("libstdc++.so.6", "libcuda.so.1"), both, [80])[0])
        self.assertIn("holds 3 for sm_80, 0 for sm_86", check_cuda.faults_of_program(needed, both, [80, 86])[0])
        self.assertIn("holds 0 for sm_80", check_cuda.faults_of_program(needed, both.replace("5twill", "6Kokkos"), [80])[0])

    def test_instructions_are_counted_on_the_shortest_way_and_in_the_whole_inner_loop(self):
        code = check_cuda.code_of(LOOPS)["_ZN5twill5loopsILi1EEvPf", 90]
        # From 0x20 to 0xd0 there are 12 instructions, 3 of them marked. An iteration passes 2 of these: the path by 0x50 takes 8
        # instructions without the one at 0xc0, and the path by 0x80 also 8.
        self.assertEqual(check_cuda.inner_loop_of(code, r"LDG\.E\.128"), ((2, 8), (3, 12)))
        # The path by 0x50 and 0xc0 passes most FFMA.
        self.assertEqual(check_cuda.inner_loop_of(code, "FFMA"), ((2, 9), (2, 12)))
        # Only the outer loop stores; of the inner loop, one iteration by 0x80 is counted.
        self.assertEqual(check_cuda.inner_loop_of(code, "STG"), ((1, 12), (1, 16)))
        # A loop behind both.
        self.assertEqual(check_cuda.inner_loop_of(code, "HMMA"), ((1, 2), (1, 2)))
        self.assertIsNone(check_cuda.inner_loop_of(code, "MOV"))
        self.assertIsNone(check_cuda.inner_loop_of([], "FFMA"))

    def test_the_table_of_inner_loops_gives_a_line_a_kernel_or_a_fault(self):
        code = check_cuda.code_of(LOOPS)["_ZN5twill5loopsILi1EEvPf", 90]
        kernel = check_cuda.Kernel("_ZN5twill5loopsILi1EEvPf", 90, 32, 0, 0, 1, code)
        entry = check_cuda.InnerLoop("a.cu", "loopsILi1E", "loops<1>", r"LDG\.E\.128", 2, "weight")
        judged = self.inner_loops(entry, [kernel], [90])
        self.assertEqual(judged, (["sm_90 loops<1>: 2.00 instructions a weight on the shortest way, 3.00 in the whole loop"], []))
        self.assertEqual(self.inner_loops(entry._replace(source="b.cu"), [kernel], [90]), ([], []))
        self.assertIn("but 0 were found", self.inner_loops(entry, [kernel], [80])[1][0])
        self.assertIn("but 2 were found", self.inner_loops(entry, [kernel, kernel], [90])[1][0])
        self.assertIn("no loop holds", self.inner_loops(entry._replace(mark="IMMA"), [kernel], [90])[1][0])

    @staticmethod
    def inner_loops(entry, kernels, archs):
        with unittest.mock.patch.object(check_cuda, "INNER_LOOPS", (entry,)):
            return check_cuda.inner_loops_of("a.cu", kernels, archs)

    def test_every_entry_of_the_table_names_a_source(self):
        for entry in check_cuda.INNER_LOOPS:
            self.assertTrue((check_cuda.ROOT / entry.source).is_file(), entry)


if __name__ == "__main__":
    unittest.main()
