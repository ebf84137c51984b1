echo 1 >/sys/class/nvme/nvme0/device/remove; echo 1 >/sys/bus/pci/rescan
