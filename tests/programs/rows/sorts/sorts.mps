NAME placement
ROWS
 N objective
 L free[0]
 L demand[0]
 L used[0]
 L used[1]
 L used[2]
 L sorts
COLUMNS
 M0 'MARKER' 'INTORG'
 n[0] objective 70.0
 n[0] free[0] 2.0
 n[0] demand[0] -0.7
 n[0] used[0] 1.0
 n[1] objective 30.0
 n[1] free[0] 1.0
 n[1] demand[0] -0.3
 n[1] used[1] 1.0
 n[2] objective 100.0
 n[2] free[0] 3.0
 n[2] demand[0] -0.9
 n[2] used[2] 1.0
 M3 'MARKER' 'INTEND'
 s objective 0.0
 M4 'MARKER' 'INTORG'
 y[0] objective 0.0
 y[0] used[0] -4.0
 y[0] sorts 1.0
 y[1] objective 0.0
 y[1] used[1] -9.0
 y[1] sorts 1.0
 y[2] objective 0.0
 y[2] used[2] -3.0
 y[2] sorts 1.0
 MEND 'MARKER' 'INTEND'
RHS
 rhs free[0] 9.0
 rhs demand[0] -0.999999999
 rhs sorts 1.0
BOUNDS
 LO bnd n[0] 0.0
 UP bnd n[0] 4.0
 LO bnd n[1] 0.0
 UP bnd n[1] 9.0
 LO bnd n[2] 0.0
 UP bnd n[2] 3.0
 LO bnd s 0.0
 UP bnd s 0.0
 LO bnd y[0] 0.0
 UP bnd y[0] 1.0
 LO bnd y[1] 0.0
 UP bnd y[1] 1.0
 LO bnd y[2] 0.0
 UP bnd y[2] 1.0
ENDATA
