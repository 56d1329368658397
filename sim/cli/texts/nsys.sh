cat >nsys.sql <<'END'
.mode csv
.headers on
WITH calls AS (
  SELECT start, correlationId, bytes, memoryOperationType AS is_free,
         coalesce(streamId, 0) AS stream,
         dense_rank() OVER (ORDER BY globalPid, contextId, address) AS id,
         lag(memoryOperationType) OVER (
           PARTITION BY globalPid, contextId, address
           ORDER BY start, correlationId) AS before
  FROM CUDA_GPU_MEMORY_USAGE_EVENTS
  WHERE memKind = 2 AND deviceId = 0 AND start > 0)
SELECT iif(is_free, 'free', 'alloc') AS op, id, bytes, stream
FROM calls WHERE NOT is_free OR before = 0
ORDER BY start, correlationId;
END
sqlite3 report.sqlite <nsys.sql >events.csv
