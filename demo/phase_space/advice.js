/** What to do about an error that Python raised; by the names of pellucid.errors. */
export const ADVICE = {
  RangeError: { title: "There is no such motion", text: "Change the field that is named." },
  OutOfMemoryError: { title: "The graphics processor is out of memory", text: "Close other pages that use it, or take fewer systems." },
  MemoryError: { title: "Python is out of memory", text: "Take fewer systems, or reload the page." },
  DeviceError: { title: "The graphics processor stopped answering", text: "Reload the page, or restart the browser." },
};
