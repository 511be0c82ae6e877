NAME layout
ROWS
 N objective
 E one_context
COLUMNS
 M0 'MARKER' 'INTORG'
 z[0] objective 3.0
 z[0] one_context 1.0
 z[1] objective 5.0
 z[1] one_context 1.0
 MEND 'MARKER' 'INTEND'
RHS
 rhs one_context 1.0
BOUNDS
 LO bnd z[0] 0.0
 UP bnd z[0] 1.0
 LO bnd z[1] 0.0
 UP bnd z[1] 1.0
ENDATA
