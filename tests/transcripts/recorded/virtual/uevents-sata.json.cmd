echo $(readlink -f /sys/block/sdb/device | grep -o 'host[0-9]*' | tail -n 1) >/run/recorded; echo 1 >/sys/block/sdb/device/delete; echo '- - -' >/sys/class/scsi_host/$(cat /run/recorded)/scan
