package localpg
