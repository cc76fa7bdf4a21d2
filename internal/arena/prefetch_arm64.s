#include "textflag.h"

// func prefetch(p unsafe.Pointer, n int)
TEXT ·prefetch(SB), NOSPLIT, $0-16
	MOVD p+0(FP), R0
	MOVD n+8(FP), R1
loop:
	SUBS $1, R1, R1
	BLT  done
	PRFM (R0), PLDL1KEEP
	ADD  $64, R0, R0
	B    loop
done:
	RET
