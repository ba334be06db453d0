/** What to do about an error that an example raised; by the names of pellucid.errors and of Python. */
export const ADVICE = {
  SyntaxError: { title: "This is no Python", text: "Mend the line that is named, or restore the code." },
  IndentationError: { title: "This is no Python", text: "Mend the line that is named, or restore the code." },
  OutOfMemoryError: { title: "The graphics processor is out of memory", text: "Close other pages that use it, or run it at a smaller size." },
  MemoryError: { title: "Python is out of memory", text: "Run it at a smaller size, or reload the page." },
  DeviceError: { title: "The graphics processor stopped answering", text: "Reload the page, or restart the browser." },
};
