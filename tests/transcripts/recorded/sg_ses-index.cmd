sg_ses --page=es --index=6 /dev/sg0
