// The one exception every method declares.

namespace py errors

/** A `yarnflow.errors.YarnflowError` that crosses a process boundary. */
exception TError {
  /** `YarnflowError.code`, UPPER_SNAKE; an unknown one becomes REMOTE at the receiver */
  1: string code,
  /** one line: what is wrong, where, and what to do next */
  2: string message,
  /** user traceback as Python prints it; empty for most errors */
  3: string details,
}
