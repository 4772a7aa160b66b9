"""What changes a sink's note, and runs a batch's commands with it: one script, which Redis runs as a whole.

Not ``MULTI``: there, what came of each command is only known to who has sent them, and a worker that dies
before it has looked leaves a batch that is there in part and looks whole.  A script looks itself, and notes
what it saw in the same step.  It compares the note with what its caller has read, so nothing has to be
watched.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from enum import Enum
from typing import Final

#: of a note
FIELDS: Final = ("job_id", "epoch", "attempt", "batch_id", "written_rows")
#: in a note, too: why the batch is there only in part
FAILED: Final = "failed"

_LENGTH: Final = struct.Struct(">I")


class Outcome(Enum):
    """What has come of a script."""

    DONE = b"done"
    #: the note is not what it was when it was read; nothing was run
    CHANGED = b"changed"
    #: the first command failed; nothing was run
    REFUSED = b"refused"
    #: a later one failed; all others were run, and the note says so
    FAILED = b"failed"


#: KEYS[1] is the note's key; ARGV what it has to be (all fields), what it becomes (those before ``failed``),
#: the batch for people, and the packed commands.
#: The note is written first: where Redis takes no writes (full, read-only), that fails before a command is
#: run.
#: Until the end it says that the batch is there in part.
SCRIPT: Final = """
local names = {'job_id', 'epoch', 'attempt', 'batch_id', 'written_rows', 'failed'}
local found = redis.call('HMGET', KEYS[1], unpack(names))
local before, after = {'HSET', KEYS[1]}, {'HSET', KEYS[1]}
for i = 1, 6 do
  if (found[i] or '') ~= ARGV[i] then return {'changed'} end
end
for i = 1, 5 do
  before[#before + 1] = names[i]
  before[#before + 1] = ARGV[i]
  after[#after + 1] = names[i]
  after[#after + 1] = ARGV[6 + i]
end
after[#after + 1] = 'failed'
after[#after + 1] = ARGV[12] .. ' was broken off'
local noted = redis.pcall(unpack(after))
if type(noted) == 'table' and noted.err then return noted end
local packed, at, ran, why = ARGV[13], 1, false, nil
while at <= #packed do
  local count, command = 0, {}
  count, at = struct.unpack('>I4', packed, at)
  for i = 1, count do
    command[i], at = struct.unpack('>I4c0', packed, at)
  end
  local answer = redis.pcall(unpack(command))
  if type(answer) ~= 'table' or not answer.err then
    ran = true
  elseif not why then
    local key = string.sub(command[2] or '', 1, 100)
    why = command[1] .. ' ' .. key .. ' in ' .. ARGV[12] .. ': ' .. answer.err
    if not ran then
      redis.call(unpack(before))
      redis.call('HDEL', KEYS[1], 'failed')
      return {'refused', why}
    end
  end
end
if why then
  redis.call('HSET', KEYS[1], 'failed', why)
  return {'failed', why}
end
redis.call('HDEL', KEYS[1], 'failed')
return {'done'}
"""


def packed(commands: Sequence[Sequence[bytes]]) -> bytes:
    """Commands as one argument: Redis limits how many a script has."""
    found: list[bytes] = []
    for command in commands:
        found.append(_LENGTH.pack(len(command)))
        for argument in command:
            found += (_LENGTH.pack(len(argument)), argument)
    return b"".join(found)
