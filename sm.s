	.text
	.file	"kernel.cc"
	.section	.rodata.cst4,"aM",@progbits,4
	.p2align	2, 0x0
.LCPI0_0:
	.long	0xff800000
.LCPI0_2:
	.long	0x42b20000
.LCPI0_3:
	.long	0xc2d00000
.LCPI0_4:
	.long	0x3fb8aa3b
.LCPI0_5:
	.long	0x4b400000
.LCPI0_6:
	.long	0xcb400000
.LCPI0_7:
	.long	0x3f318000
.LCPI0_8:
	.long	0x395e8083
.LCPI0_9:
	.long	0x3ab6a600
.LCPI0_10:
	.long	0x3c090606
.LCPI0_11:
	.long	0x3d2aaa75
.LCPI0_12:
	.long	0x3e2aaa6e
.LCPI0_13:
	.long	0x3f000000
.LCPI0_14:
	.long	0x3f800000
	.section	.rodata,"a",@progbits
	.p2align	6, 0x0
.LCPI0_1:
	.long	0
	.long	1
	.long	2
	.long	3
	.long	4
	.long	5
	.long	6
	.long	7
	.long	8
	.long	9
	.long	10
	.long	11
	.long	12
	.long	13
	.long	14
	.long	15
	.section	.rodata.cst16,"aM",@progbits,16
.LCPI0_15:
	.byte	0
	.byte	1
	.byte	2
	.byte	3
	.byte	4
	.byte	5
	.byte	6
	.byte	7
	.byte	8
	.byte	9
	.byte	10
	.byte	11
	.byte	12
	.byte	13
	.byte	14
	.byte	15
	.text
	.globl	softmax
	.p2align	4, 0x90
	.type	softmax,@function
softmax:
.Lsoftmax$local:
	.type	.Lsoftmax$local,@function
	pushq	%rbp
	pushq	%r15
	pushq	%r14
	pushq	%r13
	pushq	%r12
	pushq	%rbx
	movq	%rdx, -8(%rsp)
	cmpq	%rdx, %rsi
	jge	.LBB0_22
	movq	16(%rdi), %rax
	movq	8(%rax), %rax
	movq	(%rdi), %rcx
	movq	8(%rdi), %rdx
	movq	(%rcx), %r12
	movq	8(%rcx), %r15
	movq	(%rdx), %r14
	movq	16(%rdx), %r13
	movq	32(%rdi), %rdi
	leaq	31(%rax), %r11
	testq	%rax, %rax
	cmovnsq	%rax, %r11
	leaq	15(%rax), %rbx
	cmovnsq	%rax, %rbx
	andq	$-32, %r11
	leaq	16(%r11), %r10
	movq	%rax, %rcx
	subq	%r10, %rcx
	cmpq	$16, %rcx
	movl	$16, %r8d
	cmovgeq	%r8, %rcx
	xorl	%r9d, %r9d
	movq	%r10, -56(%rsp)
	cmpq	%r10, %rax
	cmovlel	%r9d, %ecx
	movq	%rax, %r9
	subq	%r11, %r9
	andq	$-16, %rbx
	movl	%eax, %r10d
	subl	%ebx, %r10d
	movl	$-1, %ebp
	shlxl	%r10d, %ebp, %r10d
	notl	%r10d
	kmovd	%r10d, %k1
	leaq	-16(%rax), %rdx
	shlxl	%ecx, %ebp, %r10d
	notl	%r10d
	kmovd	%r10d, %k2
	movq	%rdx, -32(%rsp)
	shrq	$4, %rdx
	incq	%rdx
	cmpq	$16, %r9
	cmovgeq	%r8, %r9
	vpbroadcastd	%r9d, %zmm0
	shlxl	%r9d, %ebp, %r8d
	notl	%r8d
	kmovd	%r8d, %k3
	vpbroadcastd	%ecx, %zmm1
	leaq	(%rdi,%r11,4), %rcx
	movq	%rcx, -40(%rsp)
	movl	%edx, %ecx
	andl	$3, %ecx
	movq	%rcx, -64(%rsp)
	andq	$-4, %rdx
	movq	%rdx, -48(%rsp)
	movq	%r14, %rcx
	imulq	%rsi, %rcx
	movq	%r12, -16(%rsp)
	leaq	(%r12,%rcx,4), %r12
	movq	%r13, %rcx
	imulq	%rsi, %rcx
	movq	%r15, -24(%rsp)
	leaq	(%r15,%rcx,4), %r15
	addq	$192, %r15
	vbroadcastss	.LCPI0_0(%rip), %zmm2
	vpmovsxbd	.LCPI0_15(%rip), %zmm3
	vxorps	%xmm4, %xmm4, %xmm4
	vxorps	%xmm5, %xmm5, %xmm5
	vbroadcastss	.LCPI0_2(%rip), %zmm6
	vbroadcastss	.LCPI0_3(%rip), %zmm7
	vbroadcastss	.LCPI0_4(%rip), %zmm8
	vbroadcastss	.LCPI0_5(%rip), %zmm9
	vbroadcastss	.LCPI0_6(%rip), %zmm10
	vbroadcastss	.LCPI0_7(%rip), %zmm11
	vbroadcastss	.LCPI0_8(%rip), %zmm12
	vbroadcastss	.LCPI0_9(%rip), %zmm13
	vbroadcastss	.LCPI0_10(%rip), %zmm14
	vbroadcastss	.LCPI0_11(%rip), %zmm15
	vbroadcastss	.LCPI0_12(%rip), %zmm16
	vbroadcastss	.LCPI0_13(%rip), %zmm17
	vbroadcastss	.LCPI0_14(%rip), %zmm18
	vxorps	%xmm19, %xmm19, %xmm19
	vmovss	.LCPI0_14(%rip), %xmm20
	movq	%r14, %rdx
	leaq	(,%r14,4), %rcx
	leaq	(,%r13,4), %r8
	jmp	.LBB0_2
	.p2align	4, 0x90
.LBB0_21:
	incq	%rsi
	addq	%rcx, %r12
	addq	%r8, %r15
	cmpq	-8(%rsp), %rsi
	je	.LBB0_22
.LBB0_2:
	vmovaps	%zmm2, %zmm22
	vmovaps	%zmm2, %zmm23
	cmpq	$32, %rax
	jl	.LBB0_5
	movl	$32, %r9d
	vmovaps	%zmm2, %zmm22
	vmovaps	%zmm2, %zmm23
	.p2align	4, 0x90
.LBB0_4:
	vmovups	-128(%r12,%r9,4), %zmm21
	vmovups	-64(%r12,%r9,4), %zmm24
	vmaxps	%zmm23, %zmm21, %zmm23
	vcmpunordps	%zmm4, %zmm21, %k4
	vaddps	%zmm21, %zmm21, %zmm23 {%k4}
	vmaxps	%zmm22, %zmm24, %zmm22
	vcmpunordps	%zmm4, %zmm24, %k4
	vaddps	%zmm24, %zmm24, %zmm22 {%k4}
	addq	$32, %r9
	cmpq	%rax, %r9
	jle	.LBB0_4
.LBB0_5:
	movq	%rsi, %r9
	imulq	%rdx, %r9
	movq	-16(%rsp), %r10
	leaq	(%r10,%r9,4), %rbp
	cmpq	%rax, %r11
	jge	.LBB0_7
	vpcmpgtd	%zmm3, %zmm1, %k4
	vpcmpgtd	%zmm3, %zmm0, %k5
	movq	-56(%rsp), %r9
	vmovups	(%rbp,%r9,4), %zmm21 {%k2} {z}
	vmovups	(%rbp,%r11,4), %zmm24 {%k3} {z}
	vblendmps	%zmm24, %zmm2, %zmm24 {%k5}
	vcmpunordps	%zmm4, %zmm24, %k5
	vmaxps	%zmm23, %zmm24, %zmm23
	vblendmps	%zmm21, %zmm2, %zmm21 {%k4}
	vaddps	%zmm24, %zmm24, %zmm23 {%k5}
	vmaxps	%zmm22, %zmm21, %zmm22
	vcmpunordps	%zmm4, %zmm21, %k4
	vaddps	%zmm21, %zmm21, %zmm22 {%k4}
.LBB0_7:
	vxorps	%xmm21, %xmm21, %xmm21
	vcmpunordps	%zmm21, %zmm22, %k4
	vmaxps	%zmm23, %zmm22, %zmm23
	vaddps	%zmm22, %zmm22, %zmm23 {%k4}
	vextractf64x4	$1, %zmm23, %ymm22
	vcmpunordps	%ymm5, %ymm22, %k4
	vmaxps	%ymm23, %ymm22, %ymm23
	vaddps	%ymm22, %ymm22, %ymm23 {%k4}
	vextractf32x4	$1, %ymm23, %xmm22
	vcmpunordps	%xmm19, %xmm22, %k4
	vmaxps	%xmm23, %xmm22, %xmm23
	vaddps	%xmm22, %xmm22, %xmm23 {%k4}
	vshufpd	$1, %xmm23, %xmm23, %xmm22
	vcmpunordps	%xmm19, %xmm22, %k4
	vaddps	%xmm23, %xmm23, %xmm24
	vshufpd	$1, %xmm24, %xmm24, %xmm24
	vmaxps	%xmm23, %xmm22, %xmm22
	vmovaps	%xmm24, %xmm22 {%k4}
	vmovshdup	%xmm22, %xmm23
	vaddss	%xmm23, %xmm23, %xmm24
	vmaxss	%xmm22, %xmm23, %xmm22
	vcmpunordss	%xmm23, %xmm23, %k4
	vmovss	%xmm24, %xmm22, %xmm22 {%k4}
	vbroadcastss	%xmm22, %zmm23
	vxorps	%xmm22, %xmm22, %xmm22
	cmpq	$32, %rax
	jl	.LBB0_10
	movl	$32, %r9d
	.p2align	4, 0x90
.LBB0_9:
	vmovups	-128(%r12,%r9,4), %zmm24
	vsubps	%zmm23, %zmm24, %zmm24
	vminps	%zmm24, %zmm6, %zmm24
	vmaxps	%zmm24, %zmm7, %zmm24
	vmulps	%zmm8, %zmm24, %zmm25
	vaddps	%zmm9, %zmm25, %zmm25
	vaddps	%zmm10, %zmm25, %zmm25
	vmulps	%zmm11, %zmm25, %zmm26
	vsubps	%zmm26, %zmm24, %zmm24
	vmulps	%zmm12, %zmm25, %zmm26
	vaddps	%zmm26, %zmm24, %zmm24
	vmulps	%zmm24, %zmm24, %zmm26
	vmulps	%zmm13, %zmm26, %zmm27
	vmulps	%zmm14, %zmm24, %zmm28
	vaddps	%zmm15, %zmm28, %zmm28
	vaddps	%zmm28, %zmm27, %zmm27
	vmulps	%zmm27, %zmm26, %zmm27
	vmulps	%zmm16, %zmm24, %zmm28
	vaddps	%zmm17, %zmm28, %zmm28
	vaddps	%zmm27, %zmm28, %zmm27
	vmulps	%zmm27, %zmm26, %zmm26
	vaddps	%zmm26, %zmm24, %zmm24
	vaddps	%zmm18, %zmm24, %zmm24
	vscalefps	%zmm25, %zmm24, %zmm24
	vmovups	%zmm24, -128(%rdi,%r9,4)
	vaddps	%zmm22, %zmm24, %zmm22
	vmovups	-64(%r12,%r9,4), %zmm24
	vsubps	%zmm23, %zmm24, %zmm24
	vminps	%zmm24, %zmm6, %zmm24
	vmaxps	%zmm24, %zmm7, %zmm24
	vmulps	%zmm8, %zmm24, %zmm25
	vaddps	%zmm9, %zmm25, %zmm25
	vaddps	%zmm10, %zmm25, %zmm25
	vmulps	%zmm11, %zmm25, %zmm26
	vsubps	%zmm26, %zmm24, %zmm24
	vmulps	%zmm12, %zmm25, %zmm26
	vaddps	%zmm26, %zmm24, %zmm24
	vmulps	%zmm24, %zmm24, %zmm26
	vmulps	%zmm13, %zmm26, %zmm27
	vmulps	%zmm14, %zmm24, %zmm28
	vaddps	%zmm15, %zmm28, %zmm28
	vaddps	%zmm28, %zmm27, %zmm27
	vmulps	%zmm27, %zmm26, %zmm27
	vmulps	%zmm16, %zmm24, %zmm28
	vaddps	%zmm17, %zmm28, %zmm28
	vaddps	%zmm27, %zmm28, %zmm27
	vmulps	%zmm27, %zmm26, %zmm26
	vaddps	%zmm26, %zmm24, %zmm24
	vaddps	%zmm18, %zmm24, %zmm24
	vscalefps	%zmm25, %zmm24, %zmm24
	vmovups	%zmm24, -64(%rdi,%r9,4)
	vaddps	%zmm21, %zmm24, %zmm21
	addq	$32, %r9
	cmpq	%rax, %r9
	jle	.LBB0_9
.LBB0_10:
	cmpq	%rax, %r11
	jge	.LBB0_12
	vpcmpgtd	%zmm3, %zmm1, %k4
	vpcmpgtd	%zmm3, %zmm0, %k5
	vmovups	(%rbp,%r11,4), %zmm24 {%k3} {z}
	vsubps	%zmm23, %zmm24, %zmm24
	vminps	%zmm24, %zmm6, %zmm24
	vmaxps	%zmm24, %zmm7, %zmm24
	vmulps	%zmm8, %zmm24, %zmm25
	vaddps	%zmm9, %zmm25, %zmm25
	vaddps	%zmm10, %zmm25, %zmm25
	vmulps	%zmm11, %zmm25, %zmm26
	vsubps	%zmm26, %zmm24, %zmm24
	vmulps	%zmm12, %zmm25, %zmm26
	vaddps	%zmm26, %zmm24, %zmm24
	vmulps	%zmm24, %zmm24, %zmm26
	vmulps	%zmm13, %zmm26, %zmm27
	vmulps	%zmm14, %zmm24, %zmm28
	vaddps	%zmm15, %zmm28, %zmm28
	vaddps	%zmm28, %zmm27, %zmm27
	vmulps	%zmm27, %zmm26, %zmm27
	vmulps	%zmm16, %zmm24, %zmm28
	vaddps	%zmm17, %zmm28, %zmm28
	vaddps	%zmm27, %zmm28, %zmm27
	vmulps	%zmm27, %zmm26, %zmm26
	vaddps	%zmm26, %zmm24, %zmm24
	vaddps	%zmm18, %zmm24, %zmm24
	vscalefps	%zmm25, %zmm24, %zmm24
	movq	-40(%rsp), %r10
	vmovups	%zmm24, (%r10) {%k3}
	movq	-56(%rsp), %r9
	vmovups	(%rbp,%r9,4), %zmm25 {%k2} {z}
	vsubps	%zmm23, %zmm25, %zmm23
	vminps	%zmm23, %zmm6, %zmm23
	vmaxps	%zmm23, %zmm7, %zmm23
	vmulps	%zmm8, %zmm23, %zmm25
	vaddps	%zmm9, %zmm25, %zmm25
	vaddps	%zmm10, %zmm25, %zmm25
	vmulps	%zmm11, %zmm25, %zmm26
	vsubps	%zmm26, %zmm23, %zmm23
	vmulps	%zmm12, %zmm25, %zmm26
	vaddps	%zmm26, %zmm23, %zmm23
	vmulps	%zmm23, %zmm23, %zmm26
	vmulps	%zmm13, %zmm26, %zmm27
	vmulps	%zmm14, %zmm23, %zmm28
	vaddps	%zmm15, %zmm28, %zmm28
	vaddps	%zmm28, %zmm27, %zmm27
	vmulps	%zmm27, %zmm26, %zmm27
	vmulps	%zmm16, %zmm23, %zmm28
	vaddps	%zmm17, %zmm28, %zmm28
	vaddps	%zmm27, %zmm28, %zmm27
	vmulps	%zmm27, %zmm26, %zmm26
	vaddps	%zmm26, %zmm23, %zmm23
	vaddps	%zmm18, %zmm23, %zmm23
	vscalefps	%zmm25, %zmm23, %zmm23
	vmovups	%zmm23, 64(%r10) {%k2}
	vmovaps	%zmm24, %zmm24 {%k5} {z}
	vaddps	%zmm24, %zmm22, %zmm22
	vmovaps	%zmm23, %zmm23 {%k4} {z}
	vaddps	%zmm23, %zmm21, %zmm21
.LBB0_12:
	vaddps	%zmm21, %zmm22, %zmm21
	movq	%rsi, %r9
	imulq	%r13, %r9
	movq	-24(%rsp), %r10
	leaq	(%r10,%r9,4), %rbp
	vextractf64x4	$1, %zmm21, %ymm22
	vaddps	%ymm22, %ymm21, %ymm21
	vextractf32x4	$1, %ymm21, %xmm22
	vaddps	%xmm22, %xmm21, %xmm21
	vshufpd	$1, %xmm21, %xmm21, %xmm22
	vaddps	%xmm22, %xmm21, %xmm21
	vmovshdup	%xmm21, %xmm22
	vaddss	%xmm22, %xmm21, %xmm21
	vdivss	%xmm21, %xmm20, %xmm21
	vbroadcastss	%xmm21, %zmm21
	cmpq	$16, %rax
	jl	.LBB0_19
	cmpq	$48, -32(%rsp)
	jae	.LBB0_23
	movl	$16, %r10d
	xorl	%r9d, %r9d
	cmpq	$0, -64(%rsp)
	jne	.LBB0_17
	jmp	.LBB0_19
	.p2align	4, 0x90
.LBB0_23:
	movq	-48(%rsp), %r10
	xorl	%r9d, %r9d
	.p2align	4, 0x90
.LBB0_24:
	vmulps	(%rdi,%r9,4), %zmm21, %zmm22
	vmovups	%zmm22, -192(%r15,%r9,4)
	vmulps	64(%rdi,%r9,4), %zmm21, %zmm22
	vmovups	%zmm22, -128(%r15,%r9,4)
	vmulps	128(%rdi,%r9,4), %zmm21, %zmm22
	vmovups	%zmm22, -64(%r15,%r9,4)
	vmulps	192(%rdi,%r9,4), %zmm21, %zmm22
	vmovups	%zmm22, (%r15,%r9,4)
	addq	$64, %r9
	addq	$-4, %r10
	jne	.LBB0_24
	leaq	16(%r9), %r10
	cmpq	$0, -64(%rsp)
	je	.LBB0_19
.LBB0_17:
	movq	-64(%rsp), %r14
	.p2align	4, 0x90
.LBB0_18:
	vmulps	(%rdi,%r9,4), %zmm21, %zmm22
	vmovups	%zmm22, (%rbp,%r9,4)
	movq	%r10, %r9
	addq	$16, %r10
	decq	%r14
	jne	.LBB0_18
.LBB0_19:
	cmpq	%rax, %rbx
	jge	.LBB0_21
	vmulps	(%rdi,%rbx,4), %zmm21, %zmm21
	vmovups	%zmm21, (%rbp,%rbx,4) {%k1}
	jmp	.LBB0_21
.LBB0_22:
	popq	%rbx
	popq	%r12
	popq	%r13
	popq	%r14
	popq	%r15
	popq	%rbp
	vzeroupper
	retq
.Lfunc_end0:
	.size	softmax, .Lfunc_end0-softmax
	.size	.Lsoftmax$local, .Lfunc_end0-softmax

	.ident	"Debian clang version 19.1.7 (3~deb12u1)"
	.section	".note.GNU-stack","",@progbits
