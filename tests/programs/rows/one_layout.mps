NAME layout
ROWS
 N objective
 E one_context
 E one_layout[0,0]
COLUMNS
 M0 'MARKER' 'INTORG'
 z[0] objective 0.0
 z[0] one_context 1.0
 z[0] one_layout[0,0] -1.0
 x[0] objective 2.0
 x[0] one_layout[0,0] 1.0
 x[1] objective 7.0
 x[1] one_layout[0,0] 1.0
 MEND 'MARKER' 'INTEND'
RHS
 rhs one_context 1.0
BOUNDS
 LO bnd z[0] 0.0
 UP bnd z[0] 1.0
 LO bnd x[0] 0.0
 UP bnd x[0] 1.0
 LO bnd x[1] 0.0
 UP bnd x[1] 1.0
ENDATA
