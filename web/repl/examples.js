/** Programs of the REPL's menu. Each runs in a fresh session, and is there to be changed. */

export const EXAMPLES = [
  {
    name: "Look at tensors",
    code: `import torch
x = torch.linspace(-3, 3, 256).reshape(8, 32)
x.sin()`,
  },
  {
    name: "Train a network",
    code: `import torch
from torch import nn
_ = torch.manual_seed(0)
x = torch.linspace(-2, 2, 128)[:, None]
y = torch.sin(2 * x)
model = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
for step in range(60):
    loss = ((model(x) - y) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 10 == 0:
        print(step, round(loss.item(), 4))

model`,
  },
  {
    name: "Trace every dispatch",
    code: `import torch
x = torch.randn(64, 64)
with torch.debug.trace() as trace:
    torch.softmax(x @ x, -1).sum().item()

trace`,
  },
  {
    name: "Draw where the time goes",
    code: `import torch
from torch.profiler import profile, record_function
x = torch.randn(256, 256)
total = torch.softmax(x @ x, -1).sum().item()  # kernels are compiled before
with profile() as timeline:
    for step in range(4):
        with record_function(f"step {step}"):
            total = torch.softmax(x @ x, -1).sum().item()

timeline`,
  },
  {
    name: "Time a product",
    code: `import torch
x = torch.randn(512, 512)
%time y = x @ x`,
  },
  {
    name: "Load a language model",
    code: `import torch
name = "HuggingFaceTB/SmolLM2-135M-Instruct"
tokenizer = torch.AutoTokenizer.from_pretrained(name)
model = torch.AutoModelForCausalLM.from_pretrained(name)
text = tokenizer.stream()
for token in model.stream(tokenizer.encode("The capital of France is"), max_new_tokens=12):
    print(text.push(token), end="")

model`,
  },
];
