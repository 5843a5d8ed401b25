#!/bin/sh
#SBATCH --job-name=lipscope
#SBATCH --array=1-8
#SBATCH --cpus-per-task=4
#SBATCH --requeue
#
# Every task of the array answers its part of a plan, into a journal of its own:
#
#   lipscope plan measure MODEL_DIR --text my.txt --out plan.jsonl
#   sbatch examples/cluster/slurm_array.sh plan.jsonl parts
#   lipscope merge --plan plan.jsonl parts/*.jsonl --out audit.jsonl
#
# A task that is killed or sent back goes on with its journal. LIPSCOPE is the
# program, if it is not on the path.
set -eu
plan=$1 folder=$2
mkdir -p "$folder"
# the first line of the plan names the command: measure, bound, search or certify
command=$(sed -n '1s/.*"of":"\([a-z]*\)".*/\1/p' "$plan")
exec "${LIPSCOPE:-lipscope}" "$command" --plan "$plan" \
  --shard "$SLURM_ARRAY_TASK_ID/$SLURM_ARRAY_TASK_COUNT" \
  --threads "${SLURM_CPUS_PER_TASK:-0}" --resume --quiet \
  --out "$folder/part-$SLURM_ARRAY_TASK_ID.jsonl"
