"""Programs of convolutions and pictures (common.py)."""
import torch
from torch import nn

import common


def small_net():
    return nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(),
        nn.Conv2d(32, 64, 3, stride=2, padding=1), nn.BatchNorm2d(64), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10)).cuda()


def pictures(size=64, count=16):
    return torch.randn(count, 3, size, size, device="cuda"), \
        torch.randint(10, (count,), device="cuda")


def cross_entropy(model, batch):
    return nn.functional.cross_entropy(model(batch[0]), batch[1])


def cnn_benchmark():
    torch.backends.cudnn.benchmark = True
    common.train(small_net(), pictures, cross_entropy)


def resnet_channels_last():
    import torchvision
    model = torchvision.models.resnet18(num_classes=10).cuda() \
        .to(memory_format=torch.channels_last)

    def batch():
        x, y = pictures(96)
        return x.to(memory_format=torch.channels_last), y

    common.train(model, batch, cross_entropy)


def amp_gradscaler():
    model = small_net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    scaler = torch.amp.GradScaler("cuda")
    for _ in range(3):
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = cross_entropy(model, pictures())
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()


def dataloader_pinned():
    data = torch.utils.data.TensorDataset(torch.randn(64, 3, 64, 64),
                                          torch.randint(10, (64,)))
    loader = torch.utils.data.DataLoader(data, batch_size=16, num_workers=2,
                                         pin_memory=True)
    model = small_net()
    batches = iter([tuple(part.cuda(non_blocking=True) for part in batch)
                    for batch in loader])
    common.train(model, lambda: next(batches), cross_entropy)


def detection():
    import torchvision
    model = torchvision.models.detection.fasterrcnn_mobilenet_v3_large_320_fpn(
        weights=None, weights_backbone=None, num_classes=5).cuda().train()
    boxes = torch.tensor([[10., 10., 90., 90.], [30., 30., 150., 150.]])

    def batch():
        return [torch.rand(3, 160, 160, device="cuda") for _ in range(2)], \
            [{"boxes": boxes.cuda(), "labels": torch.tensor([1, 2]).cuda()}
             for _ in range(2)]

    common.train(model, batch, lambda m, b: sum(m(*b).values()), steps=2)
    model.eval()
    with torch.no_grad():
        model(batch()[0])


if __name__ == "__main__":
    common.main(globals())
