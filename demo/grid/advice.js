/** What to do about an error that Python raised; by the names of pellucid.errors. */
export const ADVICE = {
  FormatError: { title: "This is no network", text: "Mend the specification, or choose one of the list." },
  ShapeError: { title: "The cells do not fit each other", text: "What a cell gives must be what the next one takes. The network that was there stays." },
  DimensionError: { title: "The cells do not fit each other", text: "What a cell gives must be what the next one takes. The network that was there stays." },
  RangeError: { title: "There is no such thing", text: "Change the field that is named." },
  ArgumentError: { title: "That does not go with this network", text: "Layers that lie in a chain can have targets: choose cells without remote links." },
  GradientError: { title: "There is nothing to learn", text: "No cell that is switched on has weights: switch one on, or build a network that has some." },
  OutOfMemoryError: { title: "The graphics processor is out of memory", text: "Close other pages that use it, or build a smaller network." },
  MemoryError: { title: "Python is out of memory", text: "Build a smaller network, or reload the page." },
  DeviceError: { title: "The graphics processor stopped answering", text: "Reload the page, or restart the browser." },
};
