# Makes of the lines of bench_gpu and peers.py a table in Markdown, or with -v form=json the elements of a list.
BEGIN { FS = "\t"; peers = split("cupy jax torch numpy", peer, " ") }
$1 == "" || NF < 3 { next }  # of one that was ended while it wrote
!($1 in seen) { seen[$1] = 1; workload[++workloads] = $1 }
{ row[++rows] = $1; library[rows] = $2; ran[$2] = 1 }
$3 == "error" { why[rows] = $4; cell[$1, $2] = "failed" }
$3 != "error" { us[$1, $2] = cell[$1, $2] = $3; if (NF >= 5) { bytes[$1] = $4; operations[$1] = $5 } }

function text(s) { gsub(/[\\"]/, "\\\\&", s); return "\"" s "\"" }
function column(w, l) { return (w, l) in cell ? cell[w, l] : "-" }
function ratio(w, other, l) { return other > 0 && us[w, l] > 0 ? sprintf("%.2f", other / us[w, l]) : "-" }
function rate(amount, time, unit) { return amount > 0 && time > 0 ? sprintf("%.1f", amount / time / unit) : "-" }

function json(  k, w, l) {
  for (k = 1; k <= rows; ++k) {
    w = row[k]; l = library[k]
    printf "{\"workload\": %s, \"library\": %s, ", text(w), text(l)
    if (k in why) printf "\"error\": %s}", text(why[k])
    else printf "\"us\": %s, \"GBps\": %.1f, \"TFLOPS\": %.3f}", us[w, l], bytes[w] / us[w, l] / 1e3, operations[w] / us[w, l] / 1e6
    print k < rows ? "," : ""
  }
}

function markdown(  k, p, w, best, time, line, rule) {
  line = "| workload | limit us | umbra us | umbra_fast us |"; rule = "|---|---|---|---|"
  for (p = 1; p <= peers; ++p) if (peer[p] in ran) { line = line " " peer[p] " us |"; rule = rule "---|" }
  print line " GB/s | TFLOP/s | best peer / umbra | best peer / fast | limit / umbra |\n" rule "---|---|---|---|---|"
  for (k = 1; k <= workloads; ++k) {
    w = workload[k]; best = 0
    line = "| " w " | " column(w, "limit") " | " column(w, "umbra") " | " column(w, "umbra_fast") " |"
    for (p = 1; p <= peers; ++p) {
      if (!(peer[p] in ran)) continue
      line = line " " column(w, peer[p]) " |"
      if (us[w, peer[p]] > 0 && (!best || us[w, peer[p]] < best)) best = us[w, peer[p]]
    }
    time = us[w, "umbra"] > 0 ? us[w, "umbra"] : us[w, "limit"]
    print line " " rate(bytes[w], time, 1e3) " | " rate(operations[w], time, 1e6) " | " ratio(w, best, "umbra") " | " \
      ratio(w, best, "umbra_fast") " | " ratio(w, us[w, "limit"], "umbra") " |"
  }
  for (k = 1; k <= rows; ++k) if (k in why) {
    if (!failures++) print "\nWhat failed:\n"
    print "- " row[k] ", " library[k] ": " why[k]
  }
}

END { if (form == "json") json(); else markdown() }
